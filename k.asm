	.file	"k64.cpp"
	.text
	.p2align 4
	.type	_ZL5beginRK9ArgumentsPKli, @function
_ZL5beginRK9ArgumentsPKli:
.LFB7490:
	.cfi_startproc
	leaq	8(%rsp), %r10
	.cfi_def_cfa 10, 0
	andq	$-64, %rsp
	vpternlogd	$0xFF, %zmm15, %zmm15, %zmm15
	pushq	-8(%r10)
	pushq	%rbp
	movq	%rsp, %rbp
	.cfi_escape 0x10,0x6,0x2,0x76,0
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%r10
	.cfi_escape 0xf,0x3,0x76,0x58,0x6
	.cfi_escape 0x10,0xf,0x2,0x76,0x78
	.cfi_escape 0x10,0xe,0x2,0x76,0x70
	.cfi_escape 0x10,0xd,0x2,0x76,0x68
	.cfi_escape 0x10,0xc,0x2,0x76,0x60
	pushq	%rbx
	subq	$3712, %rsp
	.cfi_escape 0x10,0x3,0x2,0x76,0x50
	movq	%rsi, -2736(%rbp)
	movl	%edx, -3660(%rbp)
	vpbroadcastq	-2736(%rbp), %zmm0
	vpbroadcastd	-3660(%rbp), %zmm1
	movq	(%rdi), %rdx
	vmovq	16(%rdi), %xmm4
	movq	24(%rdx), %rax
	movq	32(%rdx), %rsi
	movq	40(%rdx), %rcx
	vmovq	160(%rdx), %xmm7
	vmovdqa64	%zmm0, %zmm5
	vmovdqa64	%zmm0, %zmm2
	movq	8(%rdx), %rbx
	movq	144(%rdx), %r8
	vmovq	152(%rdx), %xmm3
	movq	16(%rdx), %r14
	vpcmpd	$2, .LC0(%rip), %zmm1, %k0
	knotb	%k0, %k1
	vpaddq	.LC1(%rip), %zmm0, %zmm5{%k1}
	kshiftrw	$8, %k0, %k1
	knotb	%k1, %k1
	vpaddq	.LC2(%rip), %zmm0, %zmm2{%k1}
	movq	8(%rdi), %rdx
	kxnorb	%k1, %k1, %k1
	kmovb	%k1, %k5
	kmovb	%k1, %k6
	kmovb	%k1, %k7
	movq	(%rdx), %r12
	leaq	8(%rax), %rdx
	vpgatherqq	0(,%zmm5,1), %zmm0{%k5}
	kmovb	%k1, %k5
	vpgatherqq	0(,%zmm2,1), %zmm6{%k6}
	vgatherqpd	(%r8,%zmm0,8), %zmm1{%k7}
	kmovb	%k1, %k6
	kmovb	%k1, %k7
	vgatherqpd	(%r8,%zmm6,8), %zmm0{%k5}
	vmovapd	%zmm1, -2608(%rbp)
	kmovb	%k1, %k5
	vmovapd	%zmm0, -2544(%rbp)
	vpgatherqq	0(,%zmm5,1), %zmm1{%k6}
	vpgatherqq	0(,%zmm2,1), %zmm0{%k7}
	kmovb	%k1, %k6
	kmovb	%k1, %k7
	vextracti64x2	$1, %ymm1, %xmm6
	vgatherqpd	(%rsi,%zmm1,8), %zmm5{%k5}
	vgatherqpd	(%rsi,%zmm0,8), %zmm2{%k6}
	vpextrq	$1, %xmm1, %r9
	vmovq	%xmm1, %r15
	vmovapd	%zmm5, -2480(%rbp)
	vmovapd	%zmm2, -2416(%rbp)
	salq	$4, %r9
	vpextrq	$1, %xmm0, %r11
	vgatherqpd	(%rcx,%zmm1,8), %zmm5{%k7}
	vgatherqpd	(%rcx,%zmm0,8), %zmm2{%k1}
	salq	$4, %r11
	salq	$4, %r15
	vmovapd	%zmm5, -2352(%rbp)
	vmovq	%r9, %xmm5
	vmovapd	%zmm2, -2288(%rbp)
	vmovq	%r11, %xmm12
	vmovq	%xmm6, %r9
	valignq	$3, %ymm1, %ymm1, %ymm6
	vextracti64x4	$0x1, %zmm1, %ymm1
	salq	$4, %r9
	valignq	$3, %ymm1, %ymm1, %ymm2
	vextracti64x2	$1, %ymm1, %xmm8
	vpextrq	$1, %xmm1, %r10
	salq	$4, %r10
	vmovq	%xmm6, %rdi
	vextracti64x2	$1, %ymm0, %xmm11
	vmovq	%xmm2, %rsi
	vmovq	%r10, %xmm6
	salq	$4, %rdi
	salq	$4, %rsi
	vmovq	%xmm8, %r10
	vmovq	%rdi, %xmm10
	vmovq	%xmm1, %rdi
	valignq	$3, %ymm0, %ymm0, %ymm2
	vmovq	%rsi, %xmm8
	vmovq	%xmm0, %rsi
	vextracti64x4	$0x1, %zmm0, %ymm0
	salq	$4, %r10
	vextracti64x2	$1, %ymm0, %xmm13
	vpextrq	$1, %xmm0, %r13
	vmovq	%xmm11, %r11
	salq	$4, %rsi
	salq	$4, %rdi
	salq	$4, %r13
	salq	$4, %r11
	vmovq	%xmm2, %r8
	vmovq	%r13, %xmm14
	salq	$4, %r8
	vmovq	%xmm13, %r13
	vmovq	%r8, %xmm11
	vmovq	%xmm0, %r8
	salq	$4, %r13
	salq	$4, %r8
	valignq	$3, %ymm0, %ymm0, %ymm2
	vmovsd	0(%r13,%rax), %xmm0
	vmovsd	(%r8,%rax), %xmm1
	vmovq	%xmm2, %rcx
	salq	$4, %rcx
	vmovq	%rcx, %xmm13
	vmovhpd	(%rax,%rcx), %xmm0, %xmm0
	vmovq	%xmm14, %rcx
	vmovhpd	(%rax,%rcx), %xmm1, %xmm2
	vmovsd	(%r11,%rax), %xmm1
	vmovq	%xmm11, %rcx
	vinsertf128	$0x1, %xmm0, %ymm2, %ymm2
	vmovsd	(%rsi,%rax), %xmm0
	vmovhpd	(%rax,%rcx), %xmm1, %xmm1
	vmovq	%xmm12, %rcx
	vmovhpd	(%rax,%rcx), %xmm0, %xmm0
	vmovq	%xmm8, %rcx
	vinsertf128	$0x1, %xmm1, %ymm0, %ymm0
	vmovsd	(%r10,%rax), %xmm1
	vinsertf64x4	$0x1, %ymm2, %zmm0, %zmm0
	vmovsd	(%rdi,%rax), %xmm2
	vmovapd	%zmm0, -2160(%rbp)
	vmovsd	8(%rax,%r13), %xmm0
	xorl	%r13d, %r13d
	vmovhpd	(%rax,%rcx), %xmm1, %xmm1
	vmovq	%xmm6, %rcx
	vmovhpd	(%rax,%rcx), %xmm2, %xmm9
	vmovsd	(%r9,%rax), %xmm2
	vmovq	%xmm10, %rcx
	vinsertf128	$0x1, %xmm1, %ymm9, %ymm9
	vmovsd	(%r15,%rax), %xmm1
	vmovhpd	(%rax,%rcx), %xmm2, %xmm2
	vmovq	%xmm5, %rcx
	vmovhpd	(%rax,%rcx), %xmm1, %xmm1
	vmovq	%xmm13, %rax
	vxorpd	%xmm13, %xmm13, %xmm13
	vinsertf128	$0x1, %xmm2, %ymm1, %ymm1
	vinsertf64x4	$0x1, %ymm9, %zmm1, %zmm1
	vmovapd	%zmm1, -2224(%rbp)
	vmovhpd	(%rdx,%rax), %xmm0, %xmm0
	vmovsd	(%rdx,%r8), %xmm1
	vmovq	%xmm14, %rax
	vmovsd	(%rdx,%r11), %xmm2
	leaq	-688(%rbp), %r11
	vbroadcastsd	.LC8(%rip), %zmm17
	vbroadcastsd	.LC10(%rip), %zmm19
	vbroadcastsd	.LC12(%rip), %zmm27
	vbroadcastsd	.LC14(%rip), %zmm26
	vbroadcastsd	.LC16(%rip), %zmm16
	vbroadcastsd	.LC20(%rip), %zmm25
	vbroadcastsd	.LC22(%rip), %zmm24
	vmovhpd	(%rdx,%rax), %xmm1, %xmm1
	vmovq	%xmm11, %rax
	vbroadcastsd	.LC6(%rip), %zmm11
	vinsertf128	$0x1, %xmm0, %ymm1, %ymm1
	vmovsd	(%rdx,%rsi), %xmm0
	vmovhpd	(%rdx,%rax), %xmm2, %xmm2
	vmovq	%xmm12, %rax
	vmovhpd	(%rdx,%rax), %xmm0, %xmm0
	vmovq	%xmm8, %rax
	vinsertf128	$0x1, %xmm2, %ymm0, %ymm0
	vmovsd	(%rdx,%rdi), %xmm2
	vinsertf64x4	$0x1, %ymm1, %zmm0, %zmm0
	vmovsd	(%rdx,%r10), %xmm1
	leaq	-1328(%rbp), %r10
	vmovapd	%zmm0, -2032(%rbp)
	vmovhpd	(%rdx,%rax), %xmm1, %xmm1
	vmovq	%xmm6, %rax
	vmovsd	(%rdx,%r9), %xmm6
	vmovhpd	(%rdx,%rax), %xmm2, %xmm2
	vmovq	%xmm10, %rax
	vinsertf128	$0x1, %xmm1, %ymm2, %ymm2
	vmovsd	(%rdx,%r15), %xmm1
	leaq	-2352(%rbp), %r15
	vmovhpd	(%rdx,%rax), %xmm6, %xmm6
	vmovq	%xmm4, %rax
	vaddsd	(%rax), %xmm13, %xmm21
	vmovq	%xmm3, %rax
	vmovhpd	(%rdx,%rcx), %xmm1, %xmm1
	leaq	-2096(%rbp), %rdx
	vaddsd	(%rax), %xmm13, %xmm20
	vmovq	%xmm7, %rax
	movq	%rdx, -2616(%rbp)
	vinsertf128	$0x1, %xmm6, %ymm1, %ymm1
	leaq	-2608(%rbp), %rdx
	vaddsd	(%rax), %xmm13, %xmm13
	movq	%rdx, -3656(%rbp)
	leaq	-2480(%rbp), %rax
	leaq	-1968(%rbp), %rdx
	vinsertf64x4	$0x1, %ymm2, %zmm1, %zmm1
	movq	%rax, -2696(%rbp)
	vbroadcastsd	.LC24(%rip), %zmm7
	vmovapd	%zmm1, -2096(%rbp)
	movq	%rdx, -2728(%rbp)
	leaq	-1840(%rbp), %rdx
	leaq	-2224(%rbp), %rax
	movq	%rbx, -3672(%rbp)
	movq	%r12, -3680(%rbp)
	movq	%rdx, -2704(%rbp)
	leaq	-1712(%rbp), %rdx
	movq	%r13, %rbx
	movq	%rax, %r12
	movq	%rdx, -2672(%rbp)
	leaq	-1584(%rbp), %rdx
	movq	%r10, %r13
	movq	%r11, -3648(%rbp)
	movq	%rdx, -2648(%rbp)
	leaq	-1456(%rbp), %rdx
	movq	%rdx, -2624(%rbp)
	leaq	-1200(%rbp), %rdx
	movq	%rdx, -2712(%rbp)
	leaq	-1072(%rbp), %rdx
	vbroadcastsd	%xmm21, %zmm21
	movq	%rdx, -2680(%rbp)
	leaq	-944(%rbp), %rdx
	vbroadcastsd	%xmm20, %zmm20
	movq	%rdx, -2656(%rbp)
	leaq	-816(%rbp), %rdx
	vbroadcastsd	%xmm13, %zmm13
	movq	%rdx, -2632(%rbp)
	leaq	-560(%rbp), %rdx
	movq	%rdx, -2720(%rbp)
	leaq	-432(%rbp), %rdx
	movq	%rdx, -2688(%rbp)
	leaq	-304(%rbp), %rdx
	movq	%rdx, -2664(%rbp)
	leaq	-176(%rbp), %rdx
	movq	%rdx, -2640(%rbp)
	movabsq	$9223372036854775807, %rdx
	vmovq	%rdx, %xmm12
	movq	$-2, %rdx
	vmovq	%rdx, %xmm0
	vpbroadcastq	%xmm12, %zmm12
	vpbroadcastq	%xmm0, %zmm4
	vmovdqa64	%zmm4, -3760(%rbp)
.L2:
	movq	-2696(%rbp), %rax
	vpxor	%xmm3, %xmm3, %xmm3
	vmovapd	%zmm13, -3312(%rbp)
	vmovapd	%zmm20, -3248(%rbp)
	vmovapd	%zmm21, -3120(%rbp)
	vmovapd	(%r12,%rbx), %zmm2
	vmovapd	(%r15,%rbx), %zmm18
	vmovapd	(%rax,%rbx), %zmm8
	movq	-2616(%rbp), %rax
	vmovapd	(%rax,%rbx), %zmm5
	movq	-3656(%rbp), %rax
	vmovapd	%zmm2, %zmm4
	vpandq	%zmm12, %zmm2, %zmm29
	vcmppd	$0, %zmm2, %zmm2, %k4
	vfnmadd132pd	%zmm2, %zmm21, %zmm4
	vcmppd	$4, %zmm11, %zmm29, %k4{%k4}
	vmovdqa64	%zmm15, %zmm0{%k4}{z}
	vfmadd132pd	%zmm20, %zmm13, %zmm29
	vmovapd	(%rax,%rbx), %zmm6
	vcmppd	$14, %zmm8, %zmm18, %k3
	vmovapd	%zmm8, -3440(%rbp)
	vmovapd	%zmm18, -3376(%rbp)
	vpandq	%zmm12, %zmm5, %zmm28
	vcmppd	$0, %zmm5, %zmm5, %k1
	vmovapd	%zmm5, -2992(%rbp)
	vcmppd	$4, %zmm11, %zmm28, %k1{%k1}
	vmovdqa64	%zmm0, %zmm9{%k1}{z}
	vmovdqa64	%zmm15, %zmm0{%k1}
	vfmadd132pd	%zmm20, %zmm13, %zmm28
	vpternlogq	$0x55, %zmm9, %zmm9, %zmm9
	vmovdqa64	%zmm0, %zmm3{%k3}
	vmovdqa64	%zmm3, -2864(%rbp)
	vsubpd	%zmm8, %zmm18, %zmm3
	vmovdqa64	%zmm9, -3632(%rbp)
	vmulpd	%zmm6, %zmm4, %zmm4
	vmovapd	%zmm6, -2800(%rbp)
	vmovapd	%zmm3, -3184(%rbp)
	vfmsub132pd	%zmm5, %zmm2, %zmm4
	vpandq	%zmm12, %zmm4, %zmm1
	vcmppd	$0, %zmm4, %zmm4, %k2{%k1}
	vcmppd	$6, %zmm17, %zmm28, %k1
	vcmppd	$4, %zmm11, %zmm1, %k2{%k2}
	vpblendmq	%zmm9, %zmm15, %zmm1{%k2}
	vdivpd	%zmm28, %zmm4, %zmm30{%k1}{z}
	vmulpd	%zmm30, %zmm30, %zmm30
	vmovdqa64	%zmm1, %zmm6{%k3}{z}
	vmovapd	%zmm4, %zmm31
	vmovapd	%zmm4, -3056(%rbp)
	kmovb	%k2, -3633(%rbp)
	vpternlogq	$0x55, %zmm6, %zmm0, %zmm0
	vmovdqa64	%zmm6, -3568(%rbp)
	vmovdqa64	%zmm0, %zmm22{%k3}{z}
	vdivpd	%zmm28, %zmm5, %zmm0{%k1}{z}
	vmulpd	%zmm0, %zmm0, %zmm0
	vcmppd	$6, %zmm17, %zmm29, %k3
	vdivpd	%zmm29, %zmm2, %zmm1{%k3}{z}
	vmovdqa64	%zmm22, -3504(%rbp)
	vfmadd132pd	%zmm1, %zmm0, %zmm1
	vsqrtpd	%zmm1, %zmm1
	vmulpd	%zmm19, %zmm1, %zmm1
	vdivpd	%zmm29, %zmm5, %zmm0{%k3}{z}
	vfmadd132pd	%zmm0, %zmm30, %zmm0
	vsqrtpd	%zmm0, %zmm0
	vmulpd	%zmm19, %zmm0, %zmm0
	vmovapd	%zmm16, %zmm30
	vcmppd	$1, %zmm27, %zmm1, %k0
	vmulpd	%zmm26, %zmm1, %zmm1
	vcmppd	$1, %zmm27, %zmm0, %k4
	korb	%k4, %k0, %k4
	knotb	%k4, %k4
	vdivpd	%zmm0, %zmm1, %zmm30{%k4}
	vcmppd	$4, %zmm30, %zmm30, %k4
	vblendmpd	%zmm16, %zmm30, %zmm1{%k4}
	vcmppd	$0, %zmm11, %zmm30, %k4
	vmovapd	.LC17(%rip), %zmm1{%k4}
	vcmppd	$0, %zmm25, %zmm30, %k4
	vmovapd	%zmm24, %zmm1{%k4}
	vcmppd	$14, %zmm1, %zmm3, %k4
	vcmppd	$4, %zmm1, %zmm1, %k0
	korb	%k0, %k4, %k4
	vcmppd	$4, %zmm0, %zmm0, %k0
	vblendmpd	%zmm1, %zmm3, %zmm1{%k4}
	vfmadd231pd	%zmm5, %zmm1, %zmm2
	vmovapd	%zmm2, %zmm30
	vfmadd132pd	%zmm1, %zmm5, %zmm31
	vmovapd	%zmm1, -2928(%rbp)
	vfnmadd132pd	%zmm2, %zmm21, %zmm30
	vmulpd	-2800(%rbp), %zmm30, %zmm30
	vfmsub132pd	%zmm31, %zmm2, %zmm30
	vsubpd	%zmm5, %zmm31, %zmm31
	vsubpd	%zmm4, %zmm30, %zmm30
	vdivpd	%zmm29, %zmm31, %zmm2{%k3}{z}
	vdivpd	%zmm28, %zmm30, %zmm29{%k1}{z}
	vmulpd	%zmm29, %zmm29, %zmm29
	vfmadd132pd	%zmm2, %zmm29, %zmm2
	vsqrtpd	%zmm2, %zmm2
	vmulpd	%zmm19, %zmm2, %zmm2
	vdivpd	%zmm1, %zmm2, %zmm2
	vcmppd	$14, %zmm2, %zmm0, %k1
	korb	%k0, %k1, %k1
	vmovapd	%zmm0, %zmm2{%k1}
	vdivpd	%zmm2, %zmm7, %zmm0
	vmulpd	%zmm26, %zmm0, %zmm0
	vmovapd	%zmm2, -2800(%rbp)
	call	_ZGVeN8v_log@PLT
	vmulpd	.LC25(%rip), %zmm0, %zmm0
	call	_ZGVeN8v_exp@PLT
	vmovapd	-2928(%rbp), %zmm1
	vxorpd	%xmm14, %xmm14, %xmm14
	vpxord	%xmm23, %xmm23, %xmm23
	vmovapd	%zmm0, %zmm28
	vmulpd	.LC27(%rip), %zmm1, %zmm0
	vmovapd	.LC15(%rip), %zmm16
	vpternlogd	$0xFF, %zmm15, %zmm15, %zmm15
	vmovapd	-2800(%rbp), %zmm2
	vmovapd	.LC5(%rip), %zmm11
	cmpq	$64, %rbx
	vmulpd	.LC31(%rip), %zmm1, %zmm1
	vmovapd	.LC19(%rip), %zmm25
	vmovapd	.LC21(%rip), %zmm24
	vmovapd	-3184(%rbp), %zmm3
	vmovdqa64	.LC33(%rip), %zmm10
	vmovdqa64	-3504(%rbp), %zmm22
	vmovapd	.LC7(%rip), %zmm17
	vmovapd	-3440(%rbp), %zmm8
	vmovdqa64	.LC4(%rip), %zmm12
	vmovapd	-3376(%rbp), %zmm18
	vcmppd	$4, %zmm0, %zmm0, %k0
	vcmppd	$14, %zmm16, %zmm0, %k1
	korb	%k0, %k1, %k1
	vblendmpd	%zmm0, %zmm16, %zmm29{%k1}
	vcmppd	$2, .LC29(%rip), %zmm2, %k1
	vmovapd	%zmm29, %zmm28{%k1}
	vcmppd	$0, %zmm11, %zmm28, %k0
	vcmppd	$4, %zmm28, %zmm28, %k1
	korb	%k0, %k1, %k1
	vcmppd	$4, %zmm1, %zmm1, %k0
	vblendmpd	%zmm14, %zmm28, %zmm2{%k1}
	vcmppd	$0, %zmm25, %zmm28, %k1
	vmovapd	%zmm24, %zmm2{%k1}
	vcmppd	$1, %zmm2, %zmm1, %k1
	korb	%k0, %k1, %k1
	vblendmpd	%zmm1, %zmm2, %zmm1{%k1}
	vpandq	%zmm10, %zmm22, %zmm2
	vcmppd	$1, %zmm1, %zmm14, %k1
	vmovapd	%zmm1, %zmm0{%k1}
	vpandq	-2864(%rbp), %zmm10, %zmm1
	vcmppd	$14, %zmm0, %zmm3, %k1
	vcmppd	$4, %zmm0, %zmm0, %k0
	korb	%k0, %k1, %k1
	vblendmpd	%zmm0, %zmm3, %zmm0{%k1}
	vcmppd	$1, %zmm0, %zmm14, %k1
	vpaddq	%zmm1, %zmm2, %zmm2
	vblendmpd	%zmm0, %zmm3, %zmm1{%k1}
	vmulpd	.LC34(%rip), %zmm1, %zmm1
	vcmppd	$4, %zmm1, %zmm1, %k0
	vcmppd	$14, %zmm17, %zmm1, %k1
	korb	%k0, %k1, %k1
	vcmppd	$4, %zmm0, %zmm0, %k0
	vblendmpd	%zmm1, %zmm17, %zmm1{%k1}
	vcmppd	$14, %zmm0, %zmm3, %k1
	korb	%k0, %k1, %k1
	vmovapd	%zmm0, %zmm3{%k1}
	vpandq	%zmm12, %zmm8, %zmm0
	vmulpd	.LC36(%rip), %zmm0, %zmm0
	kmovb	-3633(%rbp), %k2
	movq	-2728(%rbp), %rax
	vmovapd	.LC39(%rip), %zmm7
	vmovapd	-2992(%rbp), %zmm5
	vmovdqa64	-3568(%rbp), %zmm6
	vmovdqa64	-3632(%rbp), %zmm9
	vmovapd	-3056(%rbp), %zmm4
	vcmppd	$4, %zmm0, %zmm0, %k0
	vcmppd	$1, %zmm0, %zmm1, %k1
	korb	%k0, %k1, %k1
	vcmppd	$4, %zmm3, %zmm3, %k0
	vblendmpd	%zmm0, %zmm1, %zmm0{%k1}
	vpandq	%zmm10, %zmm9, %zmm9
	vmovapd	%zmm4, 0(%r13,%rbx)
	vcmppd	$14, %zmm0, %zmm3, %k1
	korb	%k0, %k1, %k1
	vmovapd	%zmm3, %zmm0{%k1}
	vpcmpq	$4, %zmm23, %zmm22, %k1
	vpblendmq	%zmm23, %zmm10, %zmm3{%k2}
	vmovapd	%zmm18, %zmm8{%k1}
	vmovapd	%zmm0, (%rax,%rbx)
	movq	-2704(%rbp), %rax
	vpcmpq	$6, %zmm9, %zmm3, %k2
	vpblendmq	-3760(%rbp), %zmm15, %zmm3{%k2}
	vmovapd	%zmm8, (%r15,%rbx)
	vmovapd	%zmm1, (%rax,%rbx)
	movq	-2672(%rbp), %rax
	vmovapd	%zmm7, (%rax,%rbx)
	vmovapd	.LC23(%rip), %zmm7
	movq	-2648(%rbp), %rax
	vblendmpd	%zmm7, %zmm14, %zmm0{%k1}
	vmovapd	%zmm0, (%rax,%rbx)
	movq	-2624(%rbp), %rax
	vpandq	%zmm10, %zmm6, %zmm0
	vpandq	%zmm3, %zmm6, %zmm6
	vpternlogq	$0x55, %zmm6, %zmm6, %zmm6
	vmovapd	%zmm5, (%rax,%rbx)
	movq	-2712(%rbp), %rax
	vmovdqa64	%zmm2, (%rax,%rbx)
	movq	-2680(%rbp), %rax
	vmovdqa64	%zmm0, (%rax,%rbx)
	movq	-2656(%rbp), %rax
	vmovdqa64	%zmm6, (%rax,%rbx)
	movq	-2632(%rbp), %rax
	vmovapd	%zmm7, (%rax,%rbx)
	movq	-3648(%rbp), %rax
	vmovapd	%zmm7, (%rax,%rbx)
	movq	-2720(%rbp), %rax
	vmovapd	%zmm7, (%rax,%rbx)
	movq	-2688(%rbp), %rax
	vmovapd	.LC13(%rip), %zmm26
	vmovapd	.LC9(%rip), %zmm19
	vmovapd	-3120(%rbp), %zmm21
	vmovapd	.LC11(%rip), %zmm27
	vmovapd	-3248(%rbp), %zmm20
	vmovapd	-3312(%rbp), %zmm13
	vmovapd	%zmm7, (%rax,%rbx)
	movq	-2664(%rbp), %rax
	vmovapd	%zmm14, (%rax,%rbx)
	movq	-2640(%rbp), %rax
	vmovapd	%zmm7, (%rax,%rbx)
	je	.L8
	movl	$64, %ebx
	jmp	.L2
	.p2align 4
	.p2align 3
.L8:
	vmovsd	.LC41(%rip), %xmm8
	movq	%r13, %r10
	movslq	-3660(%rbp), %r13
	movq	%r12, %rax
	movq	-3672(%rbp), %rbx
	movq	-3680(%rbp), %r12
	vmovq	%rax, %xmm7
	movq	%r10, %r9
	movq	-3648(%rbp), %r11
	movq	%r15, %r8
	leaq	0(,%r13,8), %rdx
	xorl	%r13d, %r13d
	movq	%rdx, -2800(%rbp)
	movq	%r12, %rcx
	movq	%r14, %rdx
	movq	%r13, %rsi
	movq	%rbx, %rax
	movq	%r11, %r10
	.p2align 4
	.p2align 3
.L3:
	movq	-2736(%rbp), %rbx
	movq	-2672(%rbp), %r11
	movq	-2704(%rbp), %rdi
	movq	(%rbx,%rsi), %r15
	movq	-2696(%rbp), %rbx
	vmovsd	(%rdi,%rsi), %xmm15
	movq	-2648(%rbp), %rdi
	vmovsd	(%rbx,%rsi), %xmm5
	movq	-2728(%rbp), %rbx
	leaq	0(,%r15,8), %r14
	addq	%rcx, %r15
	leaq	0(,%r15,8), %r13
	addq	%rcx, %r15
	leaq	0(,%r15,8), %r12
	addq	%rcx, %r15
	vmovsd	%xmm5, (%rax,%r14)
	vmovsd	(%rbx,%rsi), %xmm5
	leaq	0(,%r15,8), %rbx
	addq	%rcx, %r15
	vmovsd	%xmm5, (%rax,%r13)
	vmovsd	(%r8,%rsi), %xmm5
	vmovsd	%xmm5, (%rax,%r12)
	vmovsd	(%r11,%rsi), %xmm5
	leaq	0(,%r15,8), %r11
	addq	%rcx, %r15
	vmovsd	%xmm5, (%rax,%rbx)
	vmovsd	%xmm15, (%rax,%r11)
	vmovsd	(%rdi,%rsi), %xmm15
	vmovq	%xmm7, %rdi
	vmovsd	%xmm15, (%rax,%r15,8)
	vmovsd	(%rdi,%rsi), %xmm15
	movq	-2616(%rbp), %rdi
	addq	%rcx, %r15
	vmovsd	%xmm15, (%rax,%r15,8)
	vmovsd	(%rdi,%rsi), %xmm15
	movq	-2624(%rbp), %rdi
	addq	%rcx, %r15
	vmovsd	%xmm15, (%rax,%r15,8)
	vmovsd	(%rdi,%rsi), %xmm15
	addq	%rcx, %r15
	movq	-2632(%rbp), %rdi
	vmovsd	%xmm15, (%rax,%r15,8)
	vmovsd	(%r9,%rsi), %xmm15
	addq	%rcx, %r15
	vmovsd	%xmm15, (%rax,%r15,8)
	vmovsd	(%rdi,%rsi), %xmm15
	addq	%rcx, %r15
	vmovsd	%xmm15, (%rax,%r15,8)
	vmovsd	(%r10,%rsi), %xmm15
	movq	-2720(%rbp), %rdi
	addq	%rcx, %r15
	vmovsd	%xmm15, (%rax,%r15,8)
	vmovsd	(%rdi,%rsi), %xmm15
	movq	-2688(%rbp), %rdi
	addq	%rcx, %r15
	vmovsd	%xmm15, (%rax,%r15,8)
	vmovsd	(%rdi,%rsi), %xmm15
	movq	-2664(%rbp), %rdi
	addq	%rcx, %r15
	vmovsd	%xmm15, (%rax,%r15,8)
	vmovsd	(%rdi,%rsi), %xmm15
	movq	-2640(%rbp), %rdi
	addq	%rcx, %r15
	vmovsd	%xmm15, (%rax,%r15,8)
	vmovsd	(%rdi,%rsi), %xmm15
	movq	-2712(%rbp), %rdi
	addq	%rcx, %r15
	movq	(%rdi,%rsi), %rdi
	vmovsd	%xmm15, (%rax,%r15,8)
	addq	%rcx, %r15
	movq	$0x000000000, (%rax,%r15,8)
	addq	%rcx, %r15
	vmovsd	%xmm8, (%rax,%r15,8)
	movq	$0, (%rdx,%r14)
	movq	%rdi, (%rdx,%r13)
	movq	-2680(%rbp), %rdi
	movq	(%rdi,%rsi), %rdi
	movq	%rdi, (%rdx,%r12)
	movq	-2656(%rbp), %rdi
	movq	(%rdi,%rsi), %rdi
	addq	$8, %rsi
	movq	%rdi, (%rdx,%rbx)
	movq	$1, (%rdx,%r11)
	cmpq	%rsi, -2800(%rbp)
	jne	.L3
	vzeroupper
	addq	$3712, %rsp
	popq	%rbx
	popq	%r10
	.cfi_def_cfa 10, 0
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	leaq	-8(%r10), %rsp
	.cfi_def_cfa 7, 8
	ret
	.cfi_endproc
.LFE7490:
	.size	_ZL5beginRK9ArgumentsPKli, .-_ZL5beginRK9ArgumentsPKli
	.p2align 4
	.type	_ZL5blockRK9ArgumentsPKlill, @function
_ZL5blockRK9ArgumentsPKlill:
.LFB7491:
	.cfi_startproc
	leaq	8(%rsp), %r10
	.cfi_def_cfa 10, 0
	andq	$-64, %rsp
	vmovd	%edx, %xmm16
	vpbroadcastq	%rsi, %zmm0
	pushq	-8(%r10)
	pushq	%rbp
	vpbroadcastd	%xmm16, %zmm12
	vmovdqa64	%zmm0, %zmm15
	vmovq	%r8, %xmm17
	movq	%rsp, %rbp
	.cfi_escape 0x10,0x6,0x2,0x76,0
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%r10
	.cfi_escape 0xf,0x3,0x76,0x58,0x6
	.cfi_escape 0x10,0xf,0x2,0x76,0x78
	.cfi_escape 0x10,0xe,0x2,0x76,0x70
	.cfi_escape 0x10,0xd,0x2,0x76,0x68
	.cfi_escape 0x10,0xc,0x2,0x76,0x60
	pushq	%rbx
	subq	$6144, %rsp
	.cfi_escape 0x10,0x3,0x2,0x76,0x50
	movq	(%rdi), %rax
	vmovdqa32	.LC0(%rip), %zmm13
	movq	%rcx, -5960(%rbp)
	movq	%rsi, -5736(%rbp)
	vmovq	16(%rdi), %xmm28
	movq	16(%rax), %rbx
	movq	8(%rax), %r13
	movq	144(%rax), %rcx
	movq	%rbx, -5936(%rbp)
	movq	152(%rax), %rbx
	vpcmpd	$2, %zmm13, %zmm12, %k0
	knotb	%k0, %k1
	vpaddq	.LC1(%rip), %zmm0, %zmm15{%k1}
	kshiftrw	$8, %k0, %k1
	knotb	%k1, %k1
	vpaddq	.LC2(%rip), %zmm0, %zmm0{%k1}
	kxnorb	%k1, %k1, %k1
	kmovb	%k1, %k4
	kmovb	%k1, %k6
	kmovb	%k1, %k7
	movq	%rbx, -5744(%rbp)
	movq	160(%rax), %rbx
	movq	168(%rax), %rax
	movq	%rax, -5888(%rbp)
	movq	8(%rdi), %rax
	movq	%rbx, -5880(%rbp)
	vmovdqa64	%zmm0, %zmm14
	vpgatherqq	0(,%zmm15,1), %zmm0{%k4}
	kmovb	%k1, %k4
	vpgatherqq	0(,%zmm14,1), %zmm2{%k4}
	kmovb	%k1, %k4
	vgatherqpd	(%rcx,%zmm0,8), %zmm1{%k4}
	kmovb	%k1, %k4
	movq	(%rax), %r14
	vgatherqpd	(%rcx,%zmm2,8), %zmm0{%k6}
	vmovapd	%zmm1, -3760(%rbp)
	kmovb	%k1, %k6
	vmovapd	%zmm0, -3696(%rbp)
	leaq	(%r14,%r14), %rax
	movq	%rax, -5928(%rbp)
	addq	%r14, %rax
	movq	%rax, -5904(%rbp)
	leaq	0(,%r14,8), %rax
	vpgatherqq	0(,%zmm15,1), %zmm1{%k7}
	vpgatherqq	0(,%zmm14,1), %zmm0{%k4}
	leaq	0(%r13,%rax), %rdi
	kmovb	%k1, %k7
	vgatherqpd	0(%r13,%zmm1,8), %zmm15{%k6}
	vgatherqpd	0(%r13,%zmm0,8), %zmm14{%k7}
	vmovq	%rdi, %xmm11
	addq	%rax, %rdi
	vmovapd	%zmm15, -3632(%rbp)
	vmovapd	%zmm14, -3568(%rbp)
	vmovq	%xmm11, %r15
	vmovq	%rdi, %xmm10
	kmovb	%k1, %k4
	kmovb	%k1, %k6
	vgatherqpd	(%r15,%zmm1,8), %zmm14{%k4}
	vgatherqpd	(%r15,%zmm0,8), %zmm11{%k6}
	vmovapd	%zmm11, -3440(%rbp)
	vmovapd	%zmm14, -3504(%rbp)
	addq	%rax, %rdi
	vmovq	%xmm10, %r15
	vmovq	%rdi, %xmm9
	kmovb	%k1, %k7
	kmovb	%k1, %k4
	vgatherqpd	(%r15,%zmm1,8), %zmm11{%k7}
	vgatherqpd	(%r15,%zmm0,8), %zmm10{%k4}
	addq	%rax, %rdi
	vmovapd	%zmm11, -3376(%rbp)
	vmovq	%xmm9, %r15
	vmovapd	%zmm10, -3312(%rbp)
	vmovq	%rdi, %xmm8
	kmovb	%k1, %k6
	kmovb	%k1, %k7
	vgatherqpd	(%r15,%zmm1,8), %zmm10{%k6}
	vgatherqpd	(%r15,%zmm0,8), %zmm9{%k7}
	addq	%rax, %rdi
	vmovq	%xmm8, %r15
	vmovapd	%zmm10, -3248(%rbp)
	vmovapd	%zmm9, -3184(%rbp)
	vmovq	%rdi, %xmm7
	kmovb	%k1, %k4
	kmovb	%k1, %k6
	vgatherqpd	(%r15,%zmm1,8), %zmm9{%k4}
	vgatherqpd	(%r15,%zmm0,8), %zmm8{%k6}
	leaq	(%rax,%rdi), %r12
	vmovapd	%zmm9, -3120(%rbp)
	vmovapd	%zmm8, -3056(%rbp)
	vmovq	%xmm7, %r15
	leaq	(%rax,%r12), %r8
	kmovb	%k1, %k7
	kmovb	%k1, %k6
	vgatherqpd	(%r15,%zmm1,8), %zmm8{%k7}
	vgatherqpd	(%r12,%zmm1,8), %zmm9{%k6}
	kmovb	%k1, %k7
	vgatherqpd	(%r12,%zmm0,8), %zmm6{%k7}
	kmovb	%k1, %k4
	kmovb	%k1, %k6
	vgatherqpd	(%r15,%zmm0,8), %zmm7{%k4}
	kmovb	%k1, %k4
	vmovapd	%zmm9, -2864(%rbp)
	vmovapd	%zmm6, -2800(%rbp)
	vgatherqpd	(%r8,%zmm0,8), %zmm5{%k6}
	vgatherqpd	(%r8,%zmm1,8), %zmm6{%k4}
	leaq	(%r8,%rax), %rdx
	kmovb	%k1, %k7
	vmovapd	%zmm6, -2736(%rbp)
	vmovapd	%zmm5, -2672(%rbp)
	kmovb	%k1, %k4
	leaq	(%rdx,%rax), %r11
	vgatherqpd	(%rdx,%zmm0,8), %zmm4{%k4}
	vgatherqpd	(%rdx,%zmm1,8), %zmm5{%k7}
	kmovb	%k1, %k6
	kmovb	%k1, %k7
	vmovapd	%zmm5, -2608(%rbp)
	vmovapd	%zmm4, -2544(%rbp)
	leaq	(%r11,%rax), %rbx
	kmovb	%k1, %k4
	vgatherqpd	(%r11,%zmm1,8), %zmm4{%k6}
	vgatherqpd	(%r11,%zmm0,8), %zmm3{%k7}
	kmovb	%k1, %k6
	leaq	(%rbx,%rax), %r10
	vmovapd	%zmm4, -2480(%rbp)
	vmovapd	%zmm3, -2416(%rbp)
	kmovb	%k1, %k7
	leaq	(%r10,%rax), %r9
	vgatherqpd	(%rbx,%zmm1,8), %zmm3{%k4}
	vgatherqpd	(%rbx,%zmm0,8), %zmm2{%k6}
	kmovb	%k1, %k4
	kmovb	%k1, %k6
	vmovapd	%zmm3, -2352(%rbp)
	vmovapd	%zmm2, -2288(%rbp)
	leaq	(%r9,%rax), %rdi
	vgatherqpd	(%r10,%zmm1,8), %zmm3{%k7}
	vgatherqpd	(%r10,%zmm0,8), %zmm2{%k4}
	kmovb	%k1, %k7
	kmovb	%k1, %k4
	vmovapd	%zmm3, -2224(%rbp)
	vmovapd	%zmm2, -2160(%rbp)
	leaq	(%rdi,%rax), %rsi
	vgatherqpd	(%r9,%zmm1,8), %zmm3{%k6}
	vgatherqpd	(%r9,%zmm0,8), %zmm2{%k7}
	kmovb	%k1, %k6
	kmovb	%k1, %k7
	vmovapd	%zmm3, -2096(%rbp)
	vmovapd	%zmm2, -2032(%rbp)
	leaq	(%rsi,%rax), %rcx
	vgatherqpd	(%rdi,%zmm1,8), %zmm3{%k4}
	vgatherqpd	(%rdi,%zmm0,8), %zmm2{%k6}
	kmovb	%k1, %k4
	addq	%rcx, %rax
	vmovapd	%zmm3, -1968(%rbp)
	vmovapd	%zmm2, -1904(%rbp)
	kmovb	%k1, %k6
	vgatherqpd	(%rsi,%zmm1,8), %zmm2{%k7}
	vgatherqpd	(%rsi,%zmm0,8), %zmm3{%k4}
	kmovb	%k1, %k7
	kmovb	%k1, %k4
	vmovapd	%zmm2, -1840(%rbp)
	vmovapd	%zmm3, -1776(%rbp)
	vgatherqpd	(%rcx,%zmm1,8), %zmm5{%k6}
	vgatherqpd	(%rcx,%zmm0,8), %zmm4{%k7}
	movq	-5960(%rbp), %rcx
	vmovapd	%zmm5, -1712(%rbp)
	vmovapd	%zmm4, -1648(%rbp)
	vgatherqpd	(%rax,%zmm1,8), %zmm4{%k4}
	vgatherqpd	(%rax,%zmm0,8), %zmm1{%k1}
	vmovq	%xmm17, %rax
	vpcmpd	$6, %zmm13, %zmm12, %k1
	vmovapd	%zmm1, -1520(%rbp)
	vmovapd	%zmm8, %zmm1{%k1}{z}
	kshiftrw	$8, %k1, %k1
	vmovapd	%zmm4, -1584(%rbp)
	vmovapd	%zmm7, %zmm0{%k1}{z}
	vmovapd	%zmm1, -2992(%rbp)
	addq	%rcx, %rax
	vmovapd	%zmm0, -2928(%rbp)
	movq	%rax, -5896(%rbp)
	vmovq	%xmm17, %rax
	testq	%rax, %rax
	jle	.L26
	movq	%r14, %rax
	vbroadcastsd	.LC24(%rip), %zmm19
	leaq	-2864(%rbp), %r9
	leaq	-2480(%rbp), %rbx
	salq	$4, %rax
	leaq	-3504(%rbp), %r8
	leaq	-2992(%rbp), %rsi
	leaq	-1584(%rbp), %r10
	addq	%r14, %rax
	movq	%r13, -5912(%rbp)
	movq	%r14, -5920(%rbp)
	movq	%rbx, -3800(%rbp)
	movq	%rax, -5952(%rbp)
	vmovd	%xmm16, %eax
	movq	%r9, -3808(%rbp)
	vxorpd	%xmm27, %xmm27, %xmm27
	movslq	%eax, %rdx
	vmovapd	%zmm2, %zmm8
	movq	%rsi, %r13
	movq	%r8, %rbx
	leaq	0(,%rdx,8), %rax
	movq	%rdx, -5968(%rbp)
	vmovq	%xmm28, %r9
	movq	%r10, %r14
	movq	%rax, -5944(%rbp)
	leaq	-3632(%rbp), %rax
	movq	%rax, -3784(%rbp)
	leaq	-3376(%rbp), %rax
	movq	%rax, -3768(%rbp)
	leaq	-2736(%rbp), %rax
	movq	%rax, -3776(%rbp)
	leaq	-3760(%rbp), %rax
	movq	%rax, -5712(%rbp)
	leaq	-3120(%rbp), %rax
	movq	%rax, -5656(%rbp)
	leaq	-3248(%rbp), %rax
	movq	%rax, -5696(%rbp)
	leaq	-2608(%rbp), %rax
	movq	%rax, -3792(%rbp)
	leaq	-1712(%rbp), %rax
	movq	%rax, -3824(%rbp)
	leaq	-1456(%rbp), %rax
	movq	%rax, -5672(%rbp)
	leaq	-1328(%rbp), %rax
	movq	%rax, -5624(%rbp)
	leaq	-1200(%rbp), %rax
	movq	%rax, -5632(%rbp)
	leaq	-1072(%rbp), %rax
	movq	%rax, -5680(%rbp)
	leaq	-944(%rbp), %rax
	movq	%rax, -5704(%rbp)
	leaq	-816(%rbp), %rax
	movq	%rax, -5640(%rbp)
	leaq	-688(%rbp), %rax
	movq	%rax, -5648(%rbp)
	leaq	-560(%rbp), %rax
	movq	%rax, -5664(%rbp)
	leaq	-432(%rbp), %rax
	movq	%rax, -5688(%rbp)
	movabsq	$9223372036854775807, %rax
	vpbroadcastq	%rax, %zmm26
	movl	$5, %eax
	vpbroadcastq	%rax, %zmm7
	movl	$4, %eax
	vpbroadcastq	%rax, %zmm5
	movabsq	$9218868437227405312, %rax
	vmovdqa64	%zmm7, -6064(%rbp)
	vpbroadcastq	%rax, %zmm7
	vmovdqa64	%zmm5, -6128(%rbp)
	vmovdqa64	%zmm7, -6192(%rbp)
	.p2align 4
	.p2align 3
.L11:
	movq	-5744(%rbp), %rax
	vxorpd	%xmm0, %xmm0, %xmm0
	incq	%rcx
	vcmppd	$4, %zmm27, %zmm8, %k1
	vaddsd	(%r9), %xmm0, %xmm22
	vbroadcastsd	56(%r9), %zmm7
	vmovapd	%zmm19, %zmm8{%k1}{z}
	vpxord	%xmm31, %xmm31, %xmm31
	vcmppd	$4, %zmm27, %zmm3, %k1
	vmovapd	%zmm19, %zmm3{%k1}{z}
	xorl	%r12d, %r12d
	vmovdqa64	%zmm31, %zmm30
	xorl	%r15d, %r15d
	vmovapd	%zmm8, -5808(%rbp)
	movq	%rcx, -5720(%rbp)
	movq	%r9, -5728(%rbp)
	vmovapd	%zmm3, -5872(%rbp)
	vaddsd	(%rax), %xmm0, %xmm1
	movq	-5880(%rbp), %rax
	vmovapd	%zmm7, -5104(%rbp)
	vbroadcastsd	%xmm22, %zmm22
	vbroadcastsd	%xmm1, %zmm4
	vaddsd	(%rax), %xmm0, %xmm1
	movq	-5888(%rbp), %rax
	vmovapd	%zmm4, -5232(%rbp)
	vbroadcastsd	%xmm1, %zmm6
	vaddsd	8(%r9), %xmm0, %xmm1
	vmovapd	%zmm6, -5296(%rbp)
	vbroadcastsd	%xmm1, %zmm4
	vaddsd	16(%r9), %xmm0, %xmm1
	vmovapd	%zmm4, -5360(%rbp)
	vbroadcastsd	%xmm1, %zmm6
	vaddsd	24(%r9), %xmm0, %xmm1
	vmovapd	%zmm6, -5424(%rbp)
	vbroadcastsd	%xmm1, %zmm4
	vaddsd	32(%r9), %xmm0, %xmm1
	vmovapd	%zmm4, -5488(%rbp)
	vbroadcastsd	%xmm1, %zmm6
	vaddsd	40(%r9), %xmm0, %xmm1
	vmovapd	%zmm6, -5552(%rbp)
	vbroadcastsd	48(%r9), %zmm6
	vmovapd	%zmm6, -5040(%rbp)
	vxorpd	%xmm6, %xmm6, %xmm6
	vbroadcastsd	%xmm1, %zmm4
	vcvtsi2sdq	%rcx, %xmm6, %xmm1
	vaddsd	%xmm0, %xmm1, %xmm1
	vaddsd	(%rax), %xmm0, %xmm0
	vmovapd	%zmm4, -5616(%rbp)
	vbroadcastsd	64(%r9), %zmm4
	vbroadcastsd	%xmm1, %zmm1
	vmovapd	%zmm4, -5168(%rbp)
	vbroadcastsd	%xmm0, %zmm0
	vcmppd	$13, %zmm0, %zmm1, %k4
	kmovb	%k4, -3811(%rbp)
.L12:
	movq	-5712(%rbp), %rcx
	movq	-3768(%rbp), %rdi
	vmovdqa64	%zmm31, -4976(%rbp)
	vmovdqa64	%zmm30, -4912(%rbp)
	movq	-3784(%rbp), %rax
	vmovapd	0(%r13,%r12), %zmm4
	movq	-3808(%rbp), %rsi
	movq	-3800(%rbp), %r11
	vmovapd	(%rcx,%r12), %zmm23
	movq	-5656(%rbp), %rcx
	vmovapd	(%rdi,%r12), %zmm15
	movq	-3776(%rbp), %rdx
	vmovapd	(%rax,%r12), %zmm18
	vmovapd	(%rsi,%r12), %zmm9
	vmovapd	(%r11,%r12), %zmm10
	vmovapd	(%rcx,%r12), %zmm14
	movq	-5696(%rbp), %rcx
	vmulpd	.LC25(%rip), %zmm10, %zmm1
	vmovapd	(%rdx,%r12), %zmm8
	vcmppd	$4, %zmm27, %zmm4, %k3
	vmovapd	(%rbx,%r12), %zmm4
	kmovb	%k3, -3810(%rbp)
	vmovapd	(%rcx,%r12), %zmm0
	movq	-3792(%rbp), %rcx
	vfmadd132pd	(%rbx,%r12), %zmm18, %zmm0
	vmovapd	%zmm15, %zmm16
	vcmppd	$9, %zmm15, %zmm0, %k1
	vaddpd	(%rbx,%r12), %zmm18, %zmm16{%k1}
	vcmppd	$2, %zmm0, %zmm15, %k1
	vmovapd	%zmm18, -4784(%rbp)
	vmovapd	%zmm15, -4656(%rbp)
	vpandq	%zmm9, %zmm26, %zmm21
	vmovapd	(%rcx,%r12), %zmm11
	vmovapd	%zmm14, -4848(%rbp)
	vcmppd	$4, %zmm21, %zmm21, %k0
	vmulpd	.LC25(%rip), %zmm11, %zmm2
	vpandq	%zmm8, %zmm26, %zmm20
	vsubpd	%zmm18, %zmm16, %zmm3
	vmovapd	%zmm16, -4720(%rbp)
	vblendmpd	%zmm3, %zmm4, %zmm17{%k1}
	vfmadd132pd	%zmm3, %zmm8, %zmm1
	vfmadd132pd	%zmm3, %zmm9, %zmm2
	vmovapd	%zmm2, %zmm0
	vmovapd	%zmm17, -4592(%rbp)
	vfnmadd132pd	%zmm2, %zmm22, %zmm0
	vmulpd	%zmm23, %zmm0, %zmm0
	vfmsub132pd	%zmm1, %zmm2, %zmm0
	vmulpd	.LC43(%rip), %zmm1, %zmm2
	vmulpd	.LC43(%rip), %zmm0, %zmm5
	vfmadd231pd	.LC45(%rip), %zmm11, %zmm2
	vfmadd132pd	%zmm3, %zmm9, %zmm2
	vmovapd	%zmm2, %zmm7
	vfmadd231pd	.LC45(%rip), %zmm10, %zmm5
	vfnmadd132pd	%zmm2, %zmm22, %zmm7
	vmulpd	%zmm23, %zmm7, %zmm7
	vfmadd132pd	%zmm3, %zmm8, %zmm5
	vmulpd	.LC47(%rip), %zmm0, %zmm6
	vmulpd	.LC53(%rip), %zmm0, %zmm4
	vfmsub132pd	%zmm5, %zmm2, %zmm7
	vmulpd	.LC47(%rip), %zmm1, %zmm2
	vfmadd231pd	.LC49(%rip), %zmm10, %zmm6
	vfmadd231pd	.LC51(%rip), %zmm7, %zmm6
	vfmadd132pd	%zmm3, %zmm8, %zmm6
	vfmadd231pd	.LC55(%rip), %zmm10, %zmm4
	vfmadd231pd	.LC57(%rip), %zmm7, %zmm4
	vmulpd	.LC61(%rip), %zmm0, %zmm0
	vfmadd231pd	.LC49(%rip), %zmm11, %zmm2
	vfmadd231pd	.LC51(%rip), %zmm5, %zmm2
	vfmadd132pd	%zmm3, %zmm9, %zmm2
	vmovapd	%zmm2, %zmm12
	vfnmadd132pd	%zmm2, %zmm22, %zmm12
	vmulpd	%zmm23, %zmm12, %zmm12
	vfmadd231pd	.LC63(%rip), %zmm10, %zmm0
	vmulpd	.LC71(%rip), %zmm5, %zmm24
	vfmadd231pd	.LC65(%rip), %zmm7, %zmm0
	vfmsub132pd	%zmm6, %zmm2, %zmm12
	vmulpd	.LC53(%rip), %zmm1, %zmm2
	vfmadd231pd	.LC59(%rip), %zmm12, %zmm4
	vfmadd132pd	%zmm3, %zmm8, %zmm4
	vfmadd231pd	.LC67(%rip), %zmm12, %zmm0
	vfmadd231pd	.LC73(%rip), %zmm11, %zmm24
	vfmadd231pd	.LC55(%rip), %zmm11, %zmm2
	vfmadd231pd	.LC57(%rip), %zmm5, %zmm2
	vfmadd231pd	.LC59(%rip), %zmm6, %zmm2
	vfmadd132pd	%zmm3, %zmm9, %zmm2
	vmovapd	%zmm2, %zmm13
	vfnmadd132pd	%zmm2, %zmm22, %zmm13
	vmulpd	%zmm23, %zmm13, %zmm13
	vfmsub132pd	%zmm4, %zmm2, %zmm13
	vmulpd	.LC61(%rip), %zmm1, %zmm2
	vfmadd231pd	.LC69(%rip), %zmm13, %zmm0
	vfmadd132pd	%zmm3, %zmm8, %zmm0
	vfmadd231pd	.LC63(%rip), %zmm11, %zmm2
	vfmadd231pd	.LC65(%rip), %zmm5, %zmm2
	vfmadd231pd	.LC67(%rip), %zmm6, %zmm2
	vfmadd231pd	.LC69(%rip), %zmm4, %zmm2
	vfmadd132pd	%zmm3, %zmm9, %zmm2
	vmovapd	%zmm2, %zmm1
	vfnmadd132pd	%zmm2, %zmm22, %zmm1
	vmulpd	%zmm23, %zmm1, %zmm1
	vfmsub132pd	%zmm0, %zmm2, %zmm1
	vmulpd	.LC71(%rip), %zmm7, %zmm2
	vfmadd231pd	.LC73(%rip), %zmm10, %zmm2
	vfmadd231pd	.LC75(%rip), %zmm6, %zmm24
	vmulpd	.LC81(%rip), %zmm5, %zmm5
	vmulpd	.LC81(%rip), %zmm7, %zmm7
	vfmadd231pd	.LC75(%rip), %zmm12, %zmm2
	vfmadd231pd	.LC77(%rip), %zmm4, %zmm24
	vfmadd231pd	.LC79(%rip), %zmm0, %zmm24
	vfmadd132pd	%zmm3, %zmm9, %zmm24
	vmovapd	%zmm24, %zmm25
	vfmadd231pd	.LC77(%rip), %zmm13, %zmm2
	vfmadd231pd	.LC79(%rip), %zmm1, %zmm2
	vfmadd132pd	%zmm3, %zmm8, %zmm2
	vfmadd231pd	.LC83(%rip), %zmm11, %zmm5
	vfmadd231pd	.LC83(%rip), %zmm10, %zmm7
	vfmadd132pd	.LC85(%rip), %zmm5, %zmm6
	vfmadd132pd	.LC85(%rip), %zmm7, %zmm12
	vfmadd132pd	.LC87(%rip), %zmm6, %zmm4
	vmovapd	-5296(%rbp), %zmm7
	vmovapd	-5232(%rbp), %zmm6
	vfnmadd132pd	%zmm24, %zmm22, %zmm25
	vfmadd132pd	.LC89(%rip), %zmm4, %zmm0
	vpandq	%zmm26, %zmm24, %zmm4
	vfmadd231pd	.LC91(%rip), %zmm2, %zmm0
	vfmadd132pd	.LC87(%rip), %zmm12, %zmm13
	vmulpd	%zmm23, %zmm25, %zmm23
	vfmadd132pd	.LC89(%rip), %zmm13, %zmm1
	vcmppd	$1, %zmm21, %zmm4, %k1
	vmulpd	%zmm0, %zmm3, %zmm0
	korb	%k0, %k1, %k1
	vcmppd	$4, %zmm20, %zmm20, %k0
	vmovapd	%zmm22, -4528(%rbp)
	vmovapd	%zmm11, -4464(%rbp)
	vpandq	%zmm9, %zmm26, %zmm4{%k1}
	vmovapd	%zmm10, -4400(%rbp)
	vfmsub132pd	%zmm2, %zmm24, %zmm23
	vfmadd231pd	.LC91(%rip), %zmm23, %zmm1
	vmulpd	%zmm1, %zmm3, %zmm1
	vpandq	%zmm26, %zmm2, %zmm3
	vcmppd	$1, %zmm20, %zmm3, %k1
	korb	%k0, %k1, %k1
	vmovapd	%zmm23, -4336(%rbp)
	vmovapd	%zmm24, -4272(%rbp)
	vpandq	%zmm8, %zmm26, %zmm3{%k1}
	vmovapd	%zmm2, -4208(%rbp)
	vmovapd	%zmm9, -4144(%rbp)
	vmovapd	%zmm6, %zmm5
	vfmadd132pd	%zmm3, %zmm7, %zmm6
	vdivpd	%zmm6, %zmm1, %zmm1
	vfmadd132pd	%zmm27, %zmm1, %zmm3
	vmulpd	%zmm3, %zmm3, %zmm1
	vfmadd132pd	%zmm4, %zmm7, %zmm5
	vdivpd	%zmm5, %zmm0, %zmm0
	vfmadd132pd	%zmm27, %zmm0, %zmm4
	vmovapd	%zmm8, -4080(%rbp)
	vmovapd	%zmm3, -4016(%rbp)
	vmovapd	%zmm4, -3952(%rbp)
	vfmadd231pd	%zmm4, %zmm4, %zmm1
	vsqrtpd	%zmm1, %zmm1
	vmulpd	.LC9(%rip), %zmm1, %zmm1
	vmovapd	%zmm1, %zmm0
	vcmppd	$2, -5360(%rbp), %zmm1, %k5
	kmovb	%k5, -3809(%rbp)
	vmovapd	%zmm1, -3888(%rbp)
	call	_ZGVeN8v_log@PLT
	vmulpd	-5424(%rbp), %zmm0, %zmm0
	call	_ZGVeN8v_exp@PLT
	vmulpd	-5488(%rbp), %zmm0, %zmm0
	vxorpd	%xmm27, %xmm27, %xmm27
	kmovb	-3810(%rbp), %k3
	vmovapd	-5552(%rbp), %zmm6
	vmovapd	-5616(%rbp), %zmm7
	kmovb	-3809(%rbp), %k5
	kandb	%k3, %k5, %k5
	vmovapd	-4720(%rbp), %zmm16
	vmovapd	-4784(%rbp), %zmm18
	vmovapd	-4592(%rbp), %zmm17
	vmovdqa64	.LC4(%rip), %zmm26
	vmovapd	-4848(%rbp), %zmm14
	vmovapd	.LC23(%rip), %zmm19
	vmovapd	-4656(%rbp), %zmm15
	vmovapd	-4208(%rbp), %zmm2
	vmovapd	-4080(%rbp), %zmm8
	vmovapd	-4464(%rbp), %zmm11
	vmovapd	-4144(%rbp), %zmm9
	vmovapd	-4272(%rbp), %zmm24
	vmovapd	-4336(%rbp), %zmm23
	vmovapd	-4400(%rbp), %zmm10
	vmovdqa64	-4912(%rbp), %zmm30
	vcmppd	$4, %zmm0, %zmm0, %k0
	vcmppd	$14, %zmm6, %zmm0, %k1
	korb	%k0, %k1, %k1
	vblendmpd	%zmm16, %zmm18, %zmm16{%k5}
	vblendmpd	%zmm0, %zmm6, %zmm0{%k1}
	vcmppd	$1, %zmm7, %zmm0, %k1
	vcmppd	$4, %zmm0, %zmm0, %k0
	korb	%k0, %k1, %k1
	vblendmpd	%zmm0, %zmm7, %zmm0{%k1}
	vcmppd	$1, %zmm15, %zmm16, %k2{%k3}
	kmovb	%k2, %r10d
	sall	$7, %r10d
	vcmppd	$4, %zmm0, %zmm0, %k1
	vmovapd	%zmm0, %zmm5
	vaddpd	-5040(%rbp), %zmm27, %zmm5{%k1}
	vcmppd	$0, .LC5(%rip), %zmm0, %k1
	movl	%r10d, %eax
	kmovb	%k2, %r10d
	vmovapd	%zmm2, %zmm8{%k5}
	vmovapd	%zmm2, %zmm11{%k5}
	sarb	$7, %al
	vblendmpd	%zmm19, %zmm27, %zmm2{%k5}
	vpternlogd	$0xFF, %zmm7, %zmm7, %zmm7
	vmovapd	%zmm24, %zmm9{%k5}
	vaddpd	-5104(%rbp), %zmm27, %zmm5{%k1}
	vcmppd	$0, .LC19(%rip), %zmm0, %k1
	vmovapd	%zmm23, %zmm10{%k5}
	vaddpd	-5168(%rbp), %zmm27, %zmm5{%k1}
	vmulpd	%zmm17, %zmm5, %zmm0
	vpandq	%zmm26, %zmm16, %zmm5
	vmulpd	.LC36(%rip), %zmm5, %zmm5
	vcmppd	$14, %zmm14, %zmm5, %k1
	vcmppd	$4, %zmm5, %zmm5, %k0
	korb	%k0, %k1, %k1
	vmovapd	%zmm5, %zmm14{%k1}
	vaddpd	(%r14,%r12), %zmm2, %zmm5
	knotb	%k2, %k1
	vdivpd	%zmm14, %zmm0, %zmm14
	vcmppd	$1, %zmm19, %zmm14, %k0
	kmovb	%k0, %r8d
	orb	-3811(%rbp), %r8b
	testb	$1, %r8b
	movl	%r8d, %edx
	kmovb	%k2, %r8d
	cmove	%r15d, %eax
	sall	$6, %r8d
	movl	%r8d, %ecx
	andl	$1, %eax
	kmovb	%k2, %r8d
	sarb	$7, %cl
	testb	$2, %dl
	cmove	%r15d, %ecx
	sall	$5, %r10d
	vmovapd	%zmm5, (%r14,%r12)
	vmovdqa64	-4976(%rbp), %zmm31
	andl	$1, %ecx
	movl	%r10d, %esi
	kmovb	%k2, %r10d
	vmovapd	-3888(%rbp), %zmm1
	addl	%ecx, %ecx
	sarb	$7, %sil
	testb	$4, %dl
	vmovapd	%zmm0, (%rbx,%r12)
	cmove	%r15d, %esi
	sall	$4, %r8d
	orl	%ecx, %eax
	movq	-3768(%rbp), %rdi
	andl	$1, %esi
	movl	%r8d, %ecx
	kmovb	%k2, %r8d
	movq	-3800(%rbp), %r11
	sall	$2, %esi
	sarb	$7, %cl
	testb	$8, %dl
	cmove	%r15d, %ecx
	orl	%esi, %eax
	leal	0(,%r8,8), %esi
	andl	$1, %ecx
	sarb	$7, %sil
	sall	$3, %ecx
	testb	$16, %dl
	vmovapd	%zmm10, (%r11,%r12)
	cmove	%r15d, %esi
	orl	%ecx, %eax
	leal	0(,%r10,4), %ecx
	andl	$1, %esi
	sarb	$7, %cl
	sall	$4, %esi
	testb	$32, %dl
	cmove	%r15d, %ecx
	orl	%esi, %eax
	leal	(%r8,%r8), %esi
	andl	$1, %ecx
	sarb	$7, %sil
	sall	$5, %ecx
	testb	$64, %dl
	cmove	%r15d, %esi
	sarb	$7, %r10b
	orl	%ecx, %eax
	andl	$1, %esi
	movl	%r10d, %ecx
	sall	$6, %esi
	testb	%dl, %dl
	cmovns	%r15d, %ecx
	orl	%esi, %eax
	movq	-3808(%rbp), %rsi
	movl	%eax, %r9d
	movq	-3784(%rbp), %rax
	sall	$7, %ecx
	orl	%ecx, %r9d
	movq	-3792(%rbp), %rcx
	cmpq	$64, %r12
	kmovb	%r9d, %k6
	vmovapd	%zmm16, %zmm15{%k6}
	kmovb	%edx, %k6
	korb	%k6, %k1, %k1
	kandb	%k1, %k3, %k5
	vpblendmq	%zmm30, %zmm7, %zmm30{%k1}
	knotb	%k1, %k1
	kmovb	%r9d, %k7
	vmovapd	%zmm16, (%rax,%r12)
	movq	-3824(%rbp), %rax
	vblendmpd	%zmm19, %zmm27, %zmm0{%k1}
	movq	-3776(%rbp), %rdx
	vmovapd	%zmm0, 0(%r13,%r12)
	vblendmpd	%zmm19, %zmm27, %zmm0{%k2}
	vmovdqa64	.LC98(%rip), %zmm31{%k5}
	vmovapd	%zmm15, (%rdi,%r12)
	vmovapd	%zmm9, (%rsi,%r12)
	vmovapd	%zmm11, (%rcx,%r12)
	vmovapd	%zmm1, (%rax,%r12)
	movq	-5672(%rbp), %rax
	vmovapd	%zmm8, (%rdx,%r12)
	vmovapd	%zmm0, (%rax,%r12)
	movq	-5624(%rbp), %rax
	vblendmpd	%zmm19, %zmm27, %zmm0{%k7}
	vmovapd	%zmm0, (%rax,%r12)
	movq	-5632(%rbp), %rax
	vblendmpd	%zmm19, %zmm27, %zmm0{%k3}
	vmovapd	%zmm2, (%rax,%r12)
	movq	-5680(%rbp), %rax
	vmovapd	%zmm1, (%rax,%r12)
	movq	-5704(%rbp), %rax
	vmovapd	%zmm14, (%rax,%r12)
	movq	-5640(%rbp), %rax
	vmovapd	%zmm17, (%rax,%r12)
	movq	-5648(%rbp), %rax
	vmovapd	%zmm0, (%rax,%r12)
	vmovapd	-3952(%rbp), %zmm4
	movq	-5664(%rbp), %rax
	vmovapd	-4016(%rbp), %zmm3
	vmovapd	-4528(%rbp), %zmm22
	vmovapd	%zmm4, (%rax,%r12)
	movq	-5688(%rbp), %rax
	vmovapd	%zmm3, (%rax,%r12)
	je	.L34
	movl	$64, %r12d
	jmp	.L12
	.p2align 4
	.p2align 3
.L34:
	vptestmq	%zmm31, %zmm31, %k0
	kmovb	-3811(%rbp), %k4
	vmovapd	-5808(%rbp), %zmm8
	vmovapd	-5872(%rbp), %zmm3
	movq	-5720(%rbp), %rcx
	movq	-5728(%rbp), %r9
	kortestb	%k0, %k0
	jne	.L13
.L23:
	vptestmq	%zmm30, %zmm30, %k0
	kortestb	%k0, %k0
	je	.L24
	movq	-5896(%rbp), %rax
	cmpq	%rax, %rcx
	jl	.L11
.L24:
	movq	-5960(%rbp), %rax
	movq	%r13, %rsi
	movq	%rbx, %r8
	movq	%r14, %r10
	movq	-5912(%rbp), %r13
	movq	-5968(%rbp), %rdx
	vmovapd	%zmm3, -1776(%rbp)
	vmovapd	%zmm8, -1840(%rbp)
	movq	-3800(%rbp), %rbx
	movq	-3808(%rbp), %r9
	movq	-5920(%rbp), %r14
	subq	%rax, %rcx
	vmovq	%rcx, %xmm0
.L10:
	leaq	-2352(%rbp), %rax
	xorl	%ecx, %ecx
	leaq	-1968(%rbp), %r15
	leaq	-1840(%rbp), %r12
	vmovq	%rax, %xmm1
	leaq	-2096(%rbp), %rax
	leaq	0(,%rdx,8), %rdi
	leaq	-2224(%rbp), %r11
	vmovq	%rax, %xmm3
	movq	%r15, %rax
	movq	%r12, %r15
	movq	%rbx, %r12
	movq	%rcx, %rbx
	movq	%rsi, %rcx
	movq	%r10, %rsi
	movq	%rdi, -3800(%rbp)
	movq	%r11, %r10
	vmovq	%xmm1, %rdi
	movq	%rsi, %r11
	movq	%rax, %rsi
	.p2align 4
	.p2align 3
.L25:
	movq	-3784(%rbp), %rax
	movq	-5736(%rbp), %rdx
	vmovsd	(%rax,%rbx), %xmm2
	movq	(%rdx,%rbx), %rdx
	movq	-3768(%rbp), %rax
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%r8,%rbx), %xmm2
	addq	%r14, %rdx
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%rax,%rbx), %xmm2
	addq	%r14, %rdx
	movq	-5904(%rbp), %rax
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%rcx,%rbx), %xmm2
	addq	%rax, %rdx
	movq	-3776(%rbp), %rax
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%r9,%rbx), %xmm2
	addq	%r14, %rdx
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%rax,%rbx), %xmm2
	movq	-3792(%rbp), %rax
	addq	%r14, %rdx
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%rax,%rbx), %xmm2
	addq	%r14, %rdx
	vmovq	%xmm3, %rax
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%r12,%rbx), %xmm2
	addq	%r14, %rdx
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%rdi,%rbx), %xmm2
	addq	%r14, %rdx
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%r10,%rbx), %xmm2
	addq	%r14, %rdx
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%rax,%rbx), %xmm2
	addq	%r14, %rdx
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%rsi,%rbx), %xmm2
	addq	%r14, %rdx
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%r15,%rbx), %xmm2
	addq	%r14, %rdx
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	movq	-3824(%rbp), %rax
	addq	%r14, %rdx
	vmovsd	(%rax,%rbx), %xmm2
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	vmovsd	(%r11,%rbx), %xmm2
	addq	%r14, %rdx
	addq	$8, %rbx
	vmovsd	%xmm2, 0(%r13,%rdx,8)
	cmpq	%rbx, -3800(%rbp)
	jne	.L25
	vmovq	%xmm0, %rax
	vzeroupper
	addq	$6144, %rsp
	popq	%rbx
	popq	%r10
	.cfi_remember_state
	.cfi_def_cfa 10, 0
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	leaq	-8(%r10), %rsp
	.cfi_def_cfa 7, 8
	ret
	.p2align 4
	.p2align 3
.L13:
	.cfi_restore_state
	vmovapd	-1456(%rbp), %zmm7
	vmovapd	-1200(%rbp), %zmm4
	movl	$7, %eax
	movl	$6, %edi
	vmovapd	-944(%rbp), %zmm5
	vpandq	-1072(%rbp), %zmm26, %zmm1
	vpbroadcastq	%rax, %zmm2
	movl	$1, %eax
	vmovdqa64	-6192(%rbp), %zmm15
	vpandq	-560(%rbp), %zmm26, %zmm9
	movl	$1, %r11d
	vmovdqa64	-6128(%rbp), %zmm14
	vmovdqa64	-6064(%rbp), %zmm13
	vpandq	-432(%rbp), %zmm26, %zmm6
	vcmppd	$4, %zmm27, %zmm7, %k1
	vmovapd	-688(%rbp), %zmm7
	vmovdqa64	.LC98(%rip), %zmm0{%k1}{z}
	vcmppd	$0, %zmm27, %zmm4, %k1
	vmovapd	-1072(%rbp), %zmm4
	vcmppd	$4, %zmm27, %zmm7, %k0{%k1}
	knotb	%k0, %k0
	vcmppd	$1, %zmm19, %zmm5, %k1
	vmovdqa64	%zmm0, %zmm5{%k1}{z}
	vcmppd	$0, %zmm4, %zmm4, %k1
	vmovdqa64	%zmm0, %zmm4{%k4}{z}
	vcmppd	$4, .LC5(%rip), %zmm1, %k1{%k1}
	vmovdqa64	%zmm2, %zmm0
	korb	%k0, %k1, %k1
	vbroadcastsd	.LC18(%rip), %zmm7
	vpbroadcastq	%rdi, %zmm0{%k1}
	vpblendmq	%zmm13, %zmm14, %zmm1{%k1}
	vcmppd	$0, %zmm9, %zmm9, %k1
	vpternlogq	$64, %zmm5, %zmm0, %zmm4
	vmovdqa64	%zmm15, %zmm0
	vpandq	-560(%rbp), %zmm26, %zmm0{%k1}
	vbroadcastsd	.LC22(%rip), %zmm5
	vpxorq	%zmm1, %zmm4, %zmm4
	vcmppd	$0, %zmm6, %zmm6, %k1
	vmovdqa64	%zmm15, %zmm1
	vpandq	-432(%rbp), %zmm26, %zmm1{%k1}
	vcmppd	$0, .LC5(%rip), %zmm9, %k1
	vmovdqa64	%zmm4, -304(%rbp)
	vmovapd	-1136(%rbp), %zmm4
	vmovapd	%zmm7, %zmm0{%k1}
	vcmppd	$0, .LC5(%rip), %zmm6, %k1
	vmovapd	%zmm7, %zmm1{%k1}
	vcmppd	$0, .LC19(%rip), %zmm9, %k1
	vmovapd	%zmm5, %zmm0{%k1}
	vcmppd	$0, .LC19(%rip), %zmm6, %k1
	vmovapd	-1392(%rbp), %zmm6
	vmovapd	%zmm5, %zmm1{%k1}
	vcmppd	$1, %zmm1, %zmm0, %k1
	vcmppd	$4, %zmm1, %zmm1, %k0
	korb	%k0, %k1, %k1
	vcmppd	$0, %zmm0, %zmm0, %k1{%k1}
	vpbroadcastq	%rax, %zmm0{%k1}{z}
	vmovdqa64	%zmm0, -176(%rbp)
	vpandq	-1008(%rbp), %zmm26, %zmm0
	vcmppd	$4, %zmm27, %zmm6, %k1
	vmovapd	-624(%rbp), %zmm6
	vmovdqa64	.LC98(%rip), %zmm1{%k1}{z}
	vcmppd	$0, %zmm27, %zmm4, %k1
	vmovapd	-880(%rbp), %zmm4
	vcmppd	$4, %zmm27, %zmm6, %k0{%k1}
	knotb	%k0, %k0
	vcmppd	$1, %zmm19, %zmm4, %k1
	vmovapd	-1008(%rbp), %zmm4
	vmovdqa64	%zmm1, %zmm6{%k1}{z}
	vcmppd	$0, %zmm4, %zmm4, %k1
	vcmppd	$4, .LC5(%rip), %zmm0, %k1{%k1}
	korb	%k0, %k1, %k1
	vmovdqa64	%zmm1, %zmm0{%k4}{z}
	vpbroadcastq	%rdi, %zmm2{%k1}
	vpblendmq	%zmm13, %zmm14, %zmm4{%k1}
	vpternlogq	$64, %zmm6, %zmm2, %zmm0
	vpandq	-496(%rbp), %zmm26, %zmm6
	vpxorq	%zmm4, %zmm0, %zmm2
	vpandq	-368(%rbp), %zmm26, %zmm4
	vmovdqa64	%zmm15, %zmm0
	movq	-5936(%rbp), %r8
	movq	-5944(%rbp), %rdx
	movq	-5648(%rbp), %r10
	vmovdqa64	%zmm2, -240(%rbp)
	vcmppd	$0, %zmm6, %zmm6, %k1
	vpandq	-496(%rbp), %zmm26, %zmm0{%k1}
	vcmppd	$0, %zmm4, %zmm4, %k1
	vpandq	-368(%rbp), %zmm26, %zmm15{%k1}
	vcmppd	$0, .LC5(%rip), %zmm6, %k1
	vmovapd	%zmm7, %zmm0{%k1}
	vcmppd	$0, .LC5(%rip), %zmm4, %k1
	vmovdqa64	%zmm15, %zmm1
	vmovapd	%zmm7, %zmm1{%k1}
	vcmppd	$0, .LC19(%rip), %zmm6, %k1
	vmovapd	%zmm5, %zmm0{%k1}
	vcmppd	$0, .LC19(%rip), %zmm4, %k1
	vmovapd	%zmm5, %zmm1{%k1}
	vcmppd	$1, %zmm1, %zmm0, %k1
	vcmppd	$4, %zmm1, %zmm1, %k0
	korb	%k0, %k1, %k1
	vcmppd	$0, %zmm0, %zmm0, %k1{%k1}
	vpbroadcastq	%rax, %zmm0{%k1}{z}
	xorl	%eax, %eax
	vmovdqa64	%zmm0, -112(%rbp)
	vxorpd	%xmm0, %xmm0, %xmm0
	.p2align 4
	.p2align 3
.L22:
	vucomisd	(%r10,%rax), %xmm0
	jp	.L16
	je	.L18
.L16:
	vucomisd	0(%r13,%rax), %xmm0
	jp	.L18
	jne	.L18
	movq	-5736(%rbp), %rdi
	movq	(%rdi,%rax), %rsi
	movq	-5624(%rbp), %rdi
	vucomisd	(%rdi,%rax), %xmm0
	movq	%rcx, (%r8,%rsi,8)
	jp	.L29
	je	.L18
.L29:
	movq	-5928(%rbp), %rdi
	movq	-304(%rbp,%rax), %r12
	movq	-5920(%rbp), %r15
	addq	%rsi, %rdi
	movq	%r12, (%r8,%rdi,8)
	movq	-176(%rbp,%rax), %r12
	addq	%r15, %rdi
	movq	%r12, (%r8,%rdi,8)
	addq	%r15, %rdi
	movq	-5632(%rbp), %r15
	xorl	%r12d, %r12d
	vucomisd	(%r15,%rax), %xmm0
	setp	%r12b
	cmovne	%r11, %r12
	movq	%r12, (%r8,%rdi,8)
	movq	-5952(%rbp), %rdi
	addq	%rdi, %rsi
	movq	-5640(%rbp), %rdi
	vmovsd	(%rdi,%rax), %xmm1
	movq	-5912(%rbp), %rdi
	vmovsd	%xmm1, (%rdi,%rsi,8)
	.p2align 4
	.p2align 3
.L18:
	addq	$8, %rax
	cmpq	%rdx, %rax
	jne	.L22
	jmp	.L23
.L26:
	vmovd	%xmm16, %eax
	vpxor	%xmm0, %xmm0, %xmm0
	leaq	-2864(%rbp), %r9
	leaq	-3504(%rbp), %r8
	movslq	%eax, %rdx
	leaq	-3632(%rbp), %rax
	leaq	-2992(%rbp), %rsi
	leaq	-2480(%rbp), %rbx
	movq	%rax, -3784(%rbp)
	leaq	-3376(%rbp), %rax
	leaq	-1584(%rbp), %r10
	movq	%rax, -3768(%rbp)
	leaq	-2736(%rbp), %rax
	movq	%rax, -3776(%rbp)
	leaq	-2608(%rbp), %rax
	movq	%rax, -3792(%rbp)
	leaq	-1712(%rbp), %rax
	movq	%rax, -3824(%rbp)
	jmp	.L10
	.cfi_endproc
.LFE7491:
	.size	_ZL5blockRK9ArgumentsPKlill, .-_ZL5blockRK9ArgumentsPKlill
	.p2align 4
	.globl	run
	.type	run, @function
run:
.LFB7492:
	.cfi_startproc
	pushq	%r15
	.cfi_def_cfa_offset 16
	.cfi_offset 15, -16
	pushq	%r14
	.cfi_def_cfa_offset 24
	.cfi_offset 14, -24
	pushq	%r13
	.cfi_def_cfa_offset 32
	.cfi_offset 13, -32
	vmovq	%rdi, %xmm1
	pushq	%r12
	.cfi_def_cfa_offset 40
	.cfi_offset 12, -40
	pushq	%rbp
	.cfi_def_cfa_offset 48
	.cfi_offset 6, -48
	pushq	%rbx
	.cfi_def_cfa_offset 56
	.cfi_offset 3, -56
	vpinsrq	$1, %rsi, %xmm1, %xmm0
	subq	$88, %rsp
	.cfi_def_cfa_offset 144
	movq	(%rsi), %rax
	movq	8(%rsi), %r15
	movq	%rsi, %rbx
	movq	16(%rsi), %rbp
	movq	%rcx, 8(%rsp)
	vmovdqa	%xmm0, 48(%rsp)
	movq	%rdx, 64(%rsp)
	leaq	(%rax,%rax,4), %rsi
	movq	8(%rdi), %rax
	leaq	(%rax,%rsi,8), %rdi
	movq	%rdi, (%rsp)
	call	_ZNSt6chrono3_V212steady_clock3nowEv@PLT
	cmpq	$0, 48(%rbx)
	movq	(%rsp), %rdi
	movq	%rax, 32(%rsp)
	movq	8(%rsp), %rcx
	je	.L36
	testq	%r15, %r15
	jle	.L49
	leaq	-1(%r15), %rax
	leaq	-16(%r15), %r12
	movq	%rbx, 16(%rsp)
	leaq	48(%rsp), %r14
	andq	$-16, %rax
	movq	%rcx, (%rsp)
	movq	%rdi, 8(%rsp)
	movq	%rcx, %rbx
	subq	%rax, %r12
	movq	%rcx, 24(%rsp)
	movq	%r12, %rax
	movq	%r15, %r12
	movq	%rax, %r13
	.p2align 4
	.p2align 3
.L37:
	movl	$16, %edx
	movq	%rbx, %rsi
	movq	%r14, %rdi
	cmpq	%rdx, %r12
	cmovle	%r12, %rdx
	subq	$16, %r12
	subq	$-128, %rbx
	call	_ZL5beginRK9ArgumentsPKli
	cmpq	%r12, %r13
	jne	.L37
	movq	24(%rsp), %rcx
	movq	(%rsp), %rsi
	vxorpd	%xmm0, %xmm0, %xmm0
	movq	8(%rsp), %rdi
	movq	16(%rsp), %rbx
	leaq	(%rcx,%r15,8), %r8
	xorl	%r15d, %r15d
	.p2align 4
	.p2align 3
.L40:
	movq	(%rsi), %rax
	vucomisd	(%rdi,%rax,8), %xmm0
	jp	.L51
	je	.L38
.L51:
	movq	%rax, (%rcx,%r15,8)
	incq	%r15
.L38:
	addq	$8, %rsi
	cmpq	%r8, %rsi
	jne	.L40
.L36:
	movq	24(%rbx), %rax
	movq	%r15, %r14
	movq	%rdi, 40(%rsp)
	movq	%rcx, 24(%rsp)
	addq	%rbp, %rax
	movq	%rax, 16(%rsp)
	testq	%r14, %r14
	jle	.L60
	.p2align 4
	.p2align 3
.L62:
	movq	16(%rsp), %rax
	cmpq	%rax, %rbp
	jge	.L60
	movq	%rax, %r12
	movq	64(%rbx), %rax
	movq	24(%rsp), %r15
	subq	%rbp, %r12
	cmpq	%rax, %r12
	cmovle	%r12, %rax
	xorl	%r12d, %r12d
	xorl	%r13d, %r13d
	movq	%rax, %r8
	leaq	48(%rsp), %rax
	movq	%rax, 8(%rsp)
	movq	%r12, %rax
	movq	%r15, %r12
	movq	%rax, %r15
	.p2align 4
	.p2align 3
.L42:
	movq	8(%rsp), %rdi
	movq	%r14, %rdx
	movl	$16, %eax
	movq	%r12, %rsi
	subq	%r15, %rdx
	movq	%rbp, %rcx
	movq	%r8, (%rsp)
	cmpq	%rax, %rdx
	cmovg	%rax, %rdx
	call	_ZL5blockRK9ArgumentsPKlill
	movq	(%rsp), %r8
	movq	%rax, %rdx
	salq	$4, %rdx
	addq	%rdx, 72(%rbx)
	cmpq	%rax, %r13
	cmovl	%rax, %r13
	addq	$16, %r15
	subq	$-128, %r12
	cmpq	%r15, %r14
	jg	.L42
	movq	40(%rsp), %rdi
	movq	24(%rsp), %rcx
	addq	%r13, %rbp
	xorl	%eax, %eax
	xorl	%r12d, %r12d
	vxorpd	%xmm0, %xmm0, %xmm0
	.p2align 4
	.p2align 3
.L45:
	movq	(%rcx,%rax,8), %rdx
	vucomisd	(%rdi,%rdx,8), %xmm0
	jp	.L52
	je	.L43
.L52:
	movq	%rdx, (%rcx,%r12,8)
	incq	%r12
.L43:
	incq	%rax
	cmpq	%rax, %r14
	jg	.L45
	call	_ZNSt6chrono3_V212steady_clock3nowEv@PLT
	movq	32(%rsp), %rsi
	subq	%rsi, %rax
	movq	%rax, %rsi
	movabsq	$4835703278458516699, %rax
	imulq	%rsi
	sarq	$63, %rsi
	sarq	$18, %rdx
	subq	%rsi, %rdx
	cmpq	%rdx, 56(%rbx)
	jle	.L50
	movq	%r12, %r14
	testq	%r14, %r14
	jg	.L62
.L60:
	movq	%r14, %r15
.L46:
	vmovq	%r15, %xmm2
	movq	%r15, %rax
	vpinsrq	$1, %rbp, %xmm2, %xmm0
	vmovdqu	%xmm0, 8(%rbx)
	addq	$88, %rsp
	.cfi_remember_state
	.cfi_def_cfa_offset 56
	popq	%rbx
	.cfi_def_cfa_offset 48
	popq	%rbp
	.cfi_def_cfa_offset 40
	popq	%r12
	.cfi_def_cfa_offset 32
	popq	%r13
	.cfi_def_cfa_offset 24
	popq	%r14
	.cfi_def_cfa_offset 16
	popq	%r15
	.cfi_def_cfa_offset 8
	ret
.L50:
	.cfi_restore_state
	movq	%r12, %r15
	jmp	.L46
.L49:
	xorl	%r15d, %r15d
	jmp	.L36
	.cfi_endproc
.LFE7492:
	.size	run, .-run
	.section	.rodata
	.align 64
.LC0:
	.long	0
	.long	1
	.long	2
	.long	3
	.long	4
	.long	5
	.long	6
	.long	7
	.long	8
	.long	9
	.long	10
	.long	11
	.long	12
	.long	13
	.long	14
	.long	15
	.align 64
.LC1:
	.quad	0
	.quad	8
	.quad	16
	.quad	24
	.quad	32
	.quad	40
	.quad	48
	.quad	56
	.align 64
.LC2:
	.quad	64
	.quad	72
	.quad	80
	.quad	88
	.quad	96
	.quad	104
	.quad	112
	.quad	120
	.align 64
.LC4:
	.quad	9223372036854775807
	.quad	9223372036854775807
	.quad	9223372036854775807
	.quad	9223372036854775807
	.quad	9223372036854775807
	.quad	9223372036854775807
	.quad	9223372036854775807
	.quad	9223372036854775807
	.align 64
.LC5:
	.long	0
	.long	2146435072
	.long	0
	.long	2146435072
	.long	0
	.long	2146435072
	.long	0
	.long	2146435072
	.long	0
	.long	2146435072
	.long	0
	.long	2146435072
	.long	0
	.long	2146435072
	.long	0
	.long	2146435072
	.set	.LC6,.LC5
	.align 64
.LC7:
	.long	0
	.long	1048576
	.long	0
	.long	1048576
	.long	0
	.long	1048576
	.long	0
	.long	1048576
	.long	0
	.long	1048576
	.long	0
	.long	1048576
	.long	0
	.long	1048576
	.long	0
	.long	1048576
	.set	.LC8,.LC7
	.align 64
.LC9:
	.long	1719614412
	.long	1072079006
	.long	1719614412
	.long	1072079006
	.long	1719614412
	.long	1072079006
	.long	1719614412
	.long	1072079006
	.long	1719614412
	.long	1072079006
	.long	1719614412
	.long	1072079006
	.long	1719614412
	.long	1072079006
	.long	1719614412
	.long	1072079006
	.set	.LC10,.LC9
	.align 64
.LC11:
	.long	-1998362383
	.long	1055193269
	.long	-1998362383
	.long	1055193269
	.long	-1998362383
	.long	1055193269
	.long	-1998362383
	.long	1055193269
	.long	-1998362383
	.long	1055193269
	.long	-1998362383
	.long	1055193269
	.long	-1998362383
	.long	1055193269
	.long	-1998362383
	.long	1055193269
	.set	.LC12,.LC11
	.align 64
.LC13:
	.long	1202590843
	.long	1065646817
	.long	1202590843
	.long	1065646817
	.long	1202590843
	.long	1065646817
	.long	1202590843
	.long	1065646817
	.long	1202590843
	.long	1065646817
	.long	1202590843
	.long	1065646817
	.long	1202590843
	.long	1065646817
	.long	1202590843
	.long	1065646817
	.set	.LC14,.LC13
	.align 64
.LC15:
	.long	-1598689907
	.long	1051772663
	.long	-1598689907
	.long	1051772663
	.long	-1598689907
	.long	1051772663
	.long	-1598689907
	.long	1051772663
	.long	-1598689907
	.long	1051772663
	.long	-1598689907
	.long	1051772663
	.long	-1598689907
	.long	1051772663
	.long	-1598689907
	.long	1051772663
	.set	.LC16,.LC15
	.align 64
.LC17:
	.long	-1
	.long	2146435071
	.long	-1
	.long	2146435071
	.long	-1
	.long	2146435071
	.long	-1
	.long	2146435071
	.long	-1
	.long	2146435071
	.long	-1
	.long	2146435071
	.long	-1
	.long	2146435071
	.long	-1
	.long	2146435071
	.set	.LC18,.LC17
	.align 64
.LC19:
	.long	0
	.long	-1048576
	.long	0
	.long	-1048576
	.long	0
	.long	-1048576
	.long	0
	.long	-1048576
	.long	0
	.long	-1048576
	.long	0
	.long	-1048576
	.long	0
	.long	-1048576
	.long	0
	.long	-1048576
	.set	.LC20,.LC19
	.align 64
.LC21:
	.long	-1
	.long	-1048577
	.long	-1
	.long	-1048577
	.long	-1
	.long	-1048577
	.long	-1
	.long	-1048577
	.long	-1
	.long	-1048577
	.long	-1
	.long	-1048577
	.long	-1
	.long	-1048577
	.long	-1
	.long	-1048577
	.set	.LC22,.LC21
	.align 64
.LC23:
	.long	0
	.long	1072693248
	.long	0
	.long	1072693248
	.long	0
	.long	1072693248
	.long	0
	.long	1072693248
	.long	0
	.long	1072693248
	.long	0
	.long	1072693248
	.long	0
	.long	1072693248
	.long	0
	.long	1072693248
	.set	.LC24,.LC23
	.align 64
.LC25:
	.long	-1717986918
	.long	1070176665
	.long	-1717986918
	.long	1070176665
	.long	-1717986918
	.long	1070176665
	.long	-1717986918
	.long	1070176665
	.long	-1717986918
	.long	1070176665
	.long	-1717986918
	.long	1070176665
	.long	-1717986918
	.long	1070176665
	.long	-1717986918
	.long	1070176665
	.align 64
.LC27:
	.long	-755914244
	.long	1062232653
	.long	-755914244
	.long	1062232653
	.long	-755914244
	.long	1062232653
	.long	-755914244
	.long	1062232653
	.long	-755914244
	.long	1062232653
	.long	-755914244
	.long	1062232653
	.long	-755914244
	.long	1062232653
	.long	-755914244
	.long	1062232653
	.align 64
.LC29:
	.long	-1629006314
	.long	1020396463
	.long	-1629006314
	.long	1020396463
	.long	-1629006314
	.long	1020396463
	.long	-1629006314
	.long	1020396463
	.long	-1629006314
	.long	1020396463
	.long	-1629006314
	.long	1020396463
	.long	-1629006314
	.long	1020396463
	.long	-1629006314
	.long	1020396463
	.align 64
.LC31:
	.long	0
	.long	1079574528
	.long	0
	.long	1079574528
	.long	0
	.long	1079574528
	.long	0
	.long	1079574528
	.long	0
	.long	1079574528
	.long	0
	.long	1079574528
	.long	0
	.long	1079574528
	.long	0
	.long	1079574528
	.align 64
.LC33:
	.quad	1
	.quad	1
	.quad	1
	.quad	1
	.quad	1
	.quad	1
	.quad	1
	.quad	1
	.align 64
.LC34:
	.long	0
	.long	963641344
	.long	0
	.long	963641344
	.long	0
	.long	963641344
	.long	0
	.long	963641344
	.long	0
	.long	963641344
	.long	0
	.long	963641344
	.long	0
	.long	963641344
	.long	0
	.long	963641344
	.align 64
.LC36:
	.long	0
	.long	1019215872
	.long	0
	.long	1019215872
	.long	0
	.long	1019215872
	.long	0
	.long	1019215872
	.long	0
	.long	1019215872
	.long	0
	.long	1019215872
	.long	0
	.long	1019215872
	.long	0
	.long	1019215872
	.align 64
.LC39:
	.long	4503600
	.long	1072693248
	.long	4503600
	.long	1072693248
	.long	4503600
	.long	1072693248
	.long	4503600
	.long	1072693248
	.long	4503600
	.long	1072693248
	.long	4503600
	.long	1072693248
	.long	4503600
	.long	1072693248
	.long	4503600
	.long	1072693248
	.section	.rodata.cst8,"aM",@progbits,8
	.align 8
.LC41:
	.long	0
	.long	2146959360
	.section	.rodata
	.align 64
.LC43:
	.long	-858993459
	.long	1070386380
	.long	-858993459
	.long	1070386380
	.long	-858993459
	.long	1070386380
	.long	-858993459
	.long	1070386380
	.long	-858993459
	.long	1070386380
	.long	-858993459
	.long	1070386380
	.long	-858993459
	.long	1070386380
	.long	-858993459
	.long	1070386380
	.align 64
.LC45:
	.long	858993459
	.long	1068708659
	.long	858993459
	.long	1068708659
	.long	858993459
	.long	1068708659
	.long	858993459
	.long	1068708659
	.long	858993459
	.long	1068708659
	.long	858993459
	.long	1068708659
	.long	858993459
	.long	1068708659
	.long	858993459
	.long	1068708659
	.align 64
.LC47:
	.long	-572662306
	.long	-1072833059
	.long	-572662306
	.long	-1072833059
	.long	-572662306
	.long	-1072833059
	.long	-572662306
	.long	-1072833059
	.long	-572662306
	.long	-1072833059
	.long	-572662306
	.long	-1072833059
	.long	-572662306
	.long	-1072833059
	.long	-572662306
	.long	-1072833059
	.align 64
.LC49:
	.long	-1622543201
	.long	1072646644
	.long	-1622543201
	.long	1072646644
	.long	-1622543201
	.long	1072646644
	.long	-1622543201
	.long	1072646644
	.long	-1622543201
	.long	1072646644
	.long	-1622543201
	.long	1072646644
	.long	-1622543201
	.long	1072646644
	.long	-1622543201
	.long	1072646644
	.align 64
.LC51:
	.long	477218588
	.long	1074557383
	.long	477218588
	.long	1074557383
	.long	477218588
	.long	1074557383
	.long	477218588
	.long	1074557383
	.long	477218588
	.long	1074557383
	.long	477218588
	.long	1074557383
	.long	477218588
	.long	1074557383
	.long	477218588
	.long	1074557383
	.align 64
.LC53:
	.long	-761978652
	.long	-1071173365
	.long	-761978652
	.long	-1071173365
	.long	-761978652
	.long	-1071173365
	.long	-761978652
	.long	-1071173365
	.long	-761978652
	.long	-1071173365
	.long	-761978652
	.long	-1071173365
	.long	-761978652
	.long	-1071173365
	.long	-761978652
	.long	-1071173365
	.align 64
.LC55:
	.long	264466817
	.long	1074241260
	.long	264466817
	.long	1074241260
	.long	264466817
	.long	1074241260
	.long	264466817
	.long	1074241260
	.long	264466817
	.long	1074241260
	.long	264466817
	.long	1074241260
	.long	264466817
	.long	1074241260
	.long	264466817
	.long	1074241260
	.align 64
.LC57:
	.long	909922960
	.long	1076077906
	.long	909922960
	.long	1076077906
	.long	909922960
	.long	1076077906
	.long	909922960
	.long	1076077906
	.long	909922960
	.long	1076077906
	.long	909922960
	.long	1076077906
	.long	909922960
	.long	1076077906
	.long	909922960
	.long	1076077906
	.align 64
.LC59:
	.long	-1172425915
	.long	-1076716386
	.long	-1172425915
	.long	-1076716386
	.long	-1172425915
	.long	-1076716386
	.long	-1172425915
	.long	-1076716386
	.long	-1172425915
	.long	-1076716386
	.long	-1172425915
	.long	-1076716386
	.long	-1172425915
	.long	-1076716386
	.long	-1172425915
	.long	-1076716386
	.align 64
.LC61:
	.long	-130150524
	.long	-1071283232
	.long	-130150524
	.long	-1071283232
	.long	-130150524
	.long	-1071283232
	.long	-130150524
	.long	-1071283232
	.long	-130150524
	.long	-1071283232
	.long	-130150524
	.long	-1071283232
	.long	-130150524
	.long	-1071283232
	.long	-130150524
	.long	-1071283232
	.align 64
.LC63:
	.long	-173534032
	.long	1074185515
	.long	-173534032
	.long	1074185515
	.long	-173534032
	.long	1074185515
	.long	-173534032
	.long	1074185515
	.long	-173534032
	.long	1074185515
	.long	-173534032
	.long	1074185515
	.long	-173534032
	.long	1074185515
	.long	-173534032
	.long	1074185515
	.align 64
.LC65:
	.long	-1552802165
	.long	1075957782
	.long	-1552802165
	.long	1075957782
	.long	-1552802165
	.long	1075957782
	.long	-1552802165
	.long	1075957782
	.long	-1552802165
	.long	1075957782
	.long	-1552802165
	.long	1075957782
	.long	-1552802165
	.long	1075957782
	.long	-1552802165
	.long	1075957782
	.align 64
.LC67:
	.long	1561806289
	.long	1070715252
	.long	1561806289
	.long	1070715252
	.long	1561806289
	.long	1070715252
	.long	1561806289
	.long	1070715252
	.long	1561806289
	.long	1070715252
	.long	1561806289
	.long	1070715252
	.long	1561806289
	.long	1070715252
	.long	1561806289
	.long	1070715252
	.align 64
.LC69:
	.long	1893321775
	.long	-1076788855
	.long	1893321775
	.long	-1076788855
	.long	1893321775
	.long	-1076788855
	.long	1893321775
	.long	-1076788855
	.long	1893321775
	.long	-1076788855
	.long	1893321775
	.long	-1076788855
	.long	1893321775
	.long	-1076788855
	.long	1893321775
	.long	-1076788855
	.align 64
.LC71:
	.long	-1705638405
	.long	1071431753
	.long	-1705638405
	.long	1071431753
	.long	-1705638405
	.long	1071431753
	.long	-1705638405
	.long	1071431753
	.long	-1705638405
	.long	1071431753
	.long	-1705638405
	.long	1071431753
	.long	-1705638405
	.long	1071431753
	.long	-1705638405
	.long	1071431753
	.align 64
.LC73:
	.long	1431655765
	.long	1068979541
	.long	1431655765
	.long	1068979541
	.long	1431655765
	.long	1068979541
	.long	1431655765
	.long	1068979541
	.long	1431655765
	.long	1068979541
	.long	1431655765
	.long	1068979541
	.long	1431655765
	.long	1068979541
	.long	1431655765
	.long	1068979541
	.align 64
.LC75:
	.long	1431655765
	.long	1071961429
	.long	1431655765
	.long	1071961429
	.long	1431655765
	.long	1071961429
	.long	1431655765
	.long	1071961429
	.long	1431655765
	.long	1071961429
	.long	1431655765
	.long	1071961429
	.long	1431655765
	.long	1071961429
	.long	1431655765
	.long	1071961429
	.align 64
.LC77:
	.long	-1296593901
	.long	-1076583985
	.long	-1296593901
	.long	-1076583985
	.long	-1296593901
	.long	-1076583985
	.long	-1296593901
	.long	-1076583985
	.long	-1296593901
	.long	-1076583985
	.long	-1296593901
	.long	-1076583985
	.long	-1296593901
	.long	-1076583985
	.long	-1296593901
	.long	-1076583985
	.align 64
.LC79:
	.long	818089009
	.long	1069597452
	.long	818089009
	.long	1069597452
	.long	818089009
	.long	1069597452
	.long	818089009
	.long	1069597452
	.long	818089009
	.long	1069597452
	.long	818089009
	.long	1069597452
	.long	818089009
	.long	1069597452
	.long	818089009
	.long	1069597452
	.align 64
.LC81:
	.long	-960954448
	.long	-1083754035
	.long	-960954448
	.long	-1083754035
	.long	-960954448
	.long	-1083754035
	.long	-960954448
	.long	-1083754035
	.long	-960954448
	.long	-1083754035
	.long	-960954448
	.long	-1083754035
	.long	-960954448
	.long	-1083754035
	.long	-960954448
	.long	-1083754035
	.align 64
.LC83:
	.long	-1838882294
	.long	1061875050
	.long	-1838882294
	.long	1061875050
	.long	-1838882294
	.long	1061875050
	.long	-1838882294
	.long	1061875050
	.long	-1838882294
	.long	1061875050
	.long	-1838882294
	.long	1061875050
	.long	-1838882294
	.long	1061875050
	.long	-1838882294
	.long	1061875050
	.align 64
.LC85:
	.long	-381774871
	.long	1067007635
	.long	-381774871
	.long	1067007635
	.long	-381774871
	.long	1067007635
	.long	-381774871
	.long	1067007635
	.long	-381774871
	.long	1067007635
	.long	-381774871
	.long	1067007635
	.long	-381774871
	.long	1067007635
	.long	-381774871
	.long	1067007635
	.align 64
.LC87:
	.long	-505671621
	.long	-1079944053
	.long	-505671621
	.long	-1079944053
	.long	-505671621
	.long	-1079944053
	.long	-505671621
	.long	-1079944053
	.long	-505671621
	.long	-1079944053
	.long	-505671621
	.long	-1079944053
	.long	-505671621
	.long	-1079944053
	.long	-505671621
	.long	-1079944053
	.align 64
.LC89:
	.long	1338939011
	.long	1067228003
	.long	1338939011
	.long	1067228003
	.long	1338939011
	.long	1067228003
	.long	1338939011
	.long	1067228003
	.long	1338939011
	.long	1067228003
	.long	1338939011
	.long	1067228003
	.long	1338939011
	.long	1067228003
	.long	1338939011
	.long	1067228003
	.align 64
.LC91:
	.long	286331153
	.long	-1081011951
	.long	286331153
	.long	-1081011951
	.long	286331153
	.long	-1081011951
	.long	286331153
	.long	-1081011951
	.long	286331153
	.long	-1081011951
	.long	286331153
	.long	-1081011951
	.long	286331153
	.long	-1081011951
	.long	286331153
	.long	-1081011951
	.align 64
.LC98:
	.quad	-1
	.quad	-1
	.quad	-1
	.quad	-1
	.quad	-1
	.quad	-1
	.quad	-1
	.quad	-1
	.ident	"GCC: (Debian 12.2.0-14+deb12u1) 12.2.0"
	.section	.note.GNU-stack,"",@progbits
