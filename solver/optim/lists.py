"""The list operations that `torch.optim` itself is built on, although their names say private."""

import torch

# pyright: reportPrivateUsage=false, reportPrivateImportUsage=false
add_ = torch._foreach_add_
copy_ = torch._foreach_copy_
lerp_ = torch._foreach_lerp_
mul_ = torch._foreach_mul_
sub_ = torch._foreach_sub_
fused_adamw_ = torch._fused_adamw_
