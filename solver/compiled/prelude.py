"""The head of every kernel's C++ text: vectors of rows, and functions of them."""

from collections.abc import Iterable

from solver.compiled.expression import ELEMENTARY

UNROLL = 2  # vectors side by side, so that the latency of one is hidden behind the other

PRELUDE = """\
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define BYTES 64
#define ISA e
#elif defined(__AVX2__)
#define BYTES 32
#define ISA d
#else
#define BYTES 16
#define ISA b
#endif
typedef %(whole)s whole;
#define W (BYTES / %(size)d)
constexpr int U = %(unroll)d, L = W * U;
typedef float vf __attribute__((vector_size(4 * W), may_alias, aligned(4)));
typedef double vd __attribute__((vector_size(8 * W), may_alias, aligned(8)));
typedef int32_t vi32 __attribute__((vector_size(4 * W), may_alias));
typedef int64_t vi64 __attribute__((vector_size(8 * W), may_alias));
typedef int8_t vi8 __attribute__((vector_size(W), may_alias));
typedef whole vi __attribute__((vector_size(BYTES), may_alias));
#define F static inline __attribute__((always_inline))
F vi mask(vi m) { return m; }
F vi mask(%(other)s m) { return __builtin_convertvector(m, vi); }
F vi all(bool x) { return vi{} - (whole)x; }
F vf pick(vi m, vf a, vf b) { return __builtin_convertvector(m, vi32) ? a : b; }
F vd pick(vi m, vd a, vd b) { return __builtin_convertvector(m, vi64) ? a : b; }
F vi pick(vi m, vi a, vi b) { return (m & a) | (~m & b); }
F vf magnitude(vf x) { return (vf)((vi32)x & 0x7fffffff); }
F vd magnitude(vd x) { return (vd)((vi64)x & 0x7fffffffffffffffLL); }
F vf signs(vf x) { return __builtin_convertvector((x < 0) - (x > 0), vf); }
F vd signs(vd x) { return __builtin_convertvector((x < 0) - (x > 0), vd); }
F vf lanes_vf(const float* x, int u) { return *(const vf*)(x + u * W); }
F vd lanes_vd(const double* x, int u) { return *(const vd*)(x + u * W); }
F vi lanes_vi(const int64_t* x, int u) {
  vi64 v; memcpy(&v, x + u * W, sizeof v); return __builtin_convertvector(v, vi);
}
F vi truth(const float* x, int u) { return mask(lanes_vf(x, u) != 0); }
F vi truth(const double* x, int u) { return mask(lanes_vd(x, u) != 0); }
F void put(float* x, int u, vf v) { *(vf*)(x + u * W) = v; }
F void put(double* x, int u, vd v) { *(vd*)(x + u * W) = v; }
F void put(int64_t* x, int u, vi v) {
  const vi64 w = __builtin_convertvector(v, vi64); memcpy(x + u * W, &w, sizeof w);
}
F void put_mask(float* x, int u, vi m) { put(x, u, pick(m, vf{} + 1, vf{})); }
F void put_mask(double* x, int u, vi m) { put(x, u, pick(m, vd{} + 1, vd{})); }
// A row times a matrix (K, H): eight sums at a time stay in registers.
template <int K_, int H, typename T, typename V>
static __attribute__((noinline)) void product(const T* m, const V* x, V* y) {
  int j = 0;
  for (; j + 8 <= H; j += 8) {
    V s[8] = {};
    for (int k = 0; k < K_; k++) for (int i = 0; i < 8; i++) s[i] += x[k] * m[k * H + j + i];
    for (int i = 0; i < 8; i++) y[j + i] = s[i];
  }
  for (; j < H; j++) {
    V s = {};
    for (int k = 0; k < K_; k++) s += x[k] * m[k * H + j];
    y[j] = s;
  }
}
// A record is written once, past the caches: it need not be read first, and lanes stay in them.
template <typename T, typename V> F void stream(T* to, V v) {
#if BYTES == 64
  if (sizeof(V) == 64 && ((uintptr_t)to & 63) == 0) {
    __m512i w; memcpy(&w, &v, 64); _mm512_stream_si512((__m512i*)to, w); return;
  }
#endif
  memcpy(to, &v, sizeof v);
}
F void record(float* x, vf v) { stream(x, v); }
F void record(double* x, vd v) { stream(x, v); }
F void record(int64_t* x, vi v) { stream(x, __builtin_convertvector(v, vi64)); }
F void record(int8_t* x, vi v) {
  const vi8 w = __builtin_convertvector(v, vi8); memcpy(x, &w, sizeof w);
}
F void record(uint8_t* x, vi m) { record((int8_t*)x, m & 1); }
F bool any(vi m) {
#if BYTES == 64
  return _mm512_test_epi64_mask((__m512i)m, (__m512i)m) != 0;
#elif BYTES == 32
  return !_mm256_testz_si256((__m256i)m, (__m256i)m);
#else
  whole s = 0; for (int i = 0; i < W; i++) s |= m[i]; return s != 0;
#endif
}
#define LANES(T, x) alignas(64) T x[L]
#define EACH_VECTOR for (int u = 0; u < U; u++)
// Functions of one vector, element by element where there is no vector form.
#define ONE(name, V, T, fn) F V v_##name(V x) { \\
  alignas(64) T a[W]; memcpy(a, &x, sizeof a); \\
  for (int i = 0; i < W; i++) a[i] = fn(a[i]); \\
  V r; memcpy(&r, a, sizeof a); return r; }
#define TWO(name, V, T, fn) F V v_##name(V x, V y) { \\
  alignas(64) T a[W], b[W]; memcpy(a, &x, sizeof a); memcpy(b, &y, sizeof b); \\
  for (int i = 0; i < W; i++) a[i] = fn(a[i], b[i]); \\
  V r; memcpy(&r, a, sizeof a); return r; }
#define GLUE3(a, b, c, d) a##b##c##d
#define GLUE(a, b, c, d) GLUE3(a, b, c, d)
#define SAME(name, V, symbol) extern "C" V symbol(V) __attribute__((const, nothrow)); \\
  F V v_##name(V x) { return symbol(x); }
#define SAME2(name, V, symbol) extern "C" V symbol(V, V) __attribute__((const, nothrow)); \\
  F V v_##name(V x, V y) { return symbol(x, y); }
"""
VECTOR_FUNCTIONS = frozenset((*ELEMENTARY, "atan2", "pow"))


def prelude(used: Iterable[str], single: bool) -> str:
    """Return the head of the file: vector types, and the functions used.

    Args:
        used: names of functions.
        single: state and time are both float32, so that twice as many rows fit a vector.
    """
    whole, other = ("int32_t", "vi64") if single else ("int64_t", "vi32")
    size = 4 if single else 8
    text = PRELUDE % {"whole": whole, "other": other, "unroll": UNROLL, "size": size}
    lines = [text]
    for name in sorted(used):
        two = name in ("pow", "atan2")
        shape, same = ("TWO", "SAME2") if two else ("ONE", "SAME")
        forms = (("vd", "double", "", 8), ("vf", "float", "f", 4))
        for vector, kind, suffix, size in forms:
            plain = f"{shape}({name}, {vector}, {kind}, std::{name})"
            if name not in VECTOR_FUNCTIONS:
                lines.append(plain)
                continue
            arguments = "vv" if two else "v"
            lines.append("#if defined(__x86_64__) && defined(__GLIBC__) && !defined(SCALAR)")
            for bytes_, isa in ((64, "e"), (32, "d"), (16, "b")):
                count = bytes_ // size
                symbol = f"_ZGV{isa}N{count}{arguments}_{name}{suffix}"
                # the vector type has W elements, of which this size takes so many bytes
                word = "#if" if bytes_ == 64 else "#elif"
                lines.append(f"{word} W * {size} == {bytes_} && BYTES >= {bytes_}")
                lines.append(f"{same}({name}, {vector}, {symbol})")
            lines += ["#else", plain, "#endif", "#else", plain, "#endif"]
    return "\n".join(lines)
