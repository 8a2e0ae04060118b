"""What torch's operations are for one row: on arrays of expressions, batch axis of length 1."""

from solver.compiled.operations import arithmetic as arithmetic
from solver.compiled.operations import in_place as in_place
from solver.compiled.operations import logic as logic
from solver.compiled.operations import products as products
from solver.compiled.operations import reductions as reductions
from solver.compiled.operations import shapes as shapes
from solver.compiled.operations.table import OPERATIONS as OPERATIONS
