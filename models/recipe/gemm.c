// Products of bf16 matrices with float32 arithmetic, for CPUs on which that is faster than oneDNN's bf16 products (Intel's
// before AMX or without it: their bf16 dot products run at half of the float32 rate). Called from model.py by ctypes; needs
// AVX-512. M must be a multiple of 8, N of 32.
#ifdef __AVX512F__
#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
typedef uint16_t bf;
enum { ROWS = 8, COLS = 32, BLOCK = 64 };

static inline __m512 load16(const bf* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16));
}
static inline void store16(bf* p, __m512 v) {
  __m512i u = _mm512_castps_si512(v);
  u = _mm512_add_epi32(
      u, _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1))));
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(u, 16)));
}

// One 8 x 32 tile: a[i * rs + k * cs] times panel[k * 32 + j], added to c.
static inline void tile(const float* a, long rs, long cs, const float* panel, long k0, long k1, __m512 c[ROWS][2]) {
  for (long k = k0; k < k1; k++) {
    __m512 x = _mm512_load_ps(panel + k * COLS), y = _mm512_load_ps(panel + k * COLS + 16);
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
      __m512 v = _mm512_set1_ps(a[i * rs + k * cs]);
      c[i][0] = _mm512_fmadd_ps(v, x, c[i][0]);
      c[i][1] = _mm512_fmadd_ps(v, y, c[i][1]);
    }
  }
}

// Columns n..n+31 of rows k0..k1 of B' (K x N; stored N x K where tb) as floats, row by row.
static void pack_panel(const bf* B, int tb, long N, long K, long n, long k0, long k1, float* panel) {
  if (tb) {
    for (long j = 0; j < COLS; j++)
      for (long k = k0; k < k1; k++)
        ((uint32_t*)panel)[(k - k0) * COLS + j] = (uint32_t)B[(n + j) * K + k] << 16;
  } else
    for (long k = k0; k < k1; k++) {
      _mm512_store_ps(panel + (k - k0) * COLS, load16(B + k * N + n));
      _mm512_store_ps(panel + (k - k0) * COLS + 16, load16(B + k * N + n + 16));
    }
}

// Rows m..m+7 of columns k0..k1 of A' (M x K; stored K x M where ta): by rows of k1 - k0, or, where ta, by columns of 8.
static void pack_strip(const bf* A, int ta, long M, long K, long m, long k0, long k1, float* strip) {
  long n = k1 - k0;
  if (ta)
    for (long k = 0; k < n; k++)
      _mm256_storeu_ps(strip + k * ROWS,
                       _mm256_castsi256_ps(_mm256_slli_epi32(
                           _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)(A + (k0 + k) * M + m))), 16)));
  else
    for (long i = 0; i < ROWS; i++)
      for (long k = 0; k < n; k++)
        ((uint32_t*)strip)[i * n + k] = (uint32_t)A[(m + i) * K + k0 + k] << 16;
}

// C (M x N) = A' B'.
void gemm(const bf* A, const bf* B, bf* C, long M, long N, long K, int ta, int tb) {
  long deep = K > 768 ? 512 : K; // so that what a thread works on stays in its L2 cache
  float* panels = aligned_alloc(64, (size_t)deep * N * 4);
  float* sums = deep < K ? calloc((size_t)M * N, 4) : NULL;
#pragma omp parallel
  {
    float* strips = aligned_alloc(64, (size_t)BLOCK * deep * 4);
    for (long k0 = 0; k0 < K; k0 += deep) {
      long k1 = k0 + deep < K ? k0 + deep : K, n = k1 - k0;
#pragma omp for schedule(dynamic, 1)
      for (long j = 0; j < N; j += COLS)
        pack_panel(B, tb, N, K, j, k0, k1, panels + j * deep);
#pragma omp for schedule(dynamic, 1)
      for (long m = 0; m < M; m += BLOCK) {
        long rows = M - m < BLOCK ? M - m : BLOCK;
        for (long i = 0; i < rows; i += ROWS)
          pack_strip(A, ta, M, K, m + i, k0, k1, strips + i * n);
        for (long j = 0; j < N; j += COLS)
          for (long i = 0; i < rows; i += ROWS) {
            __m512 c[ROWS][2];
            for (int r = 0; r < ROWS; r++)
              for (int h = 0; h < 2; h++)
                c[r][h] = sums ? _mm512_loadu_ps(sums + (m + i + r) * N + j + 16 * h) : _mm512_setzero_ps();
            if (ta)
              tile(strips + i * n, 1, ROWS, panels + j * deep, 0, n, c);
            else
              tile(strips + i * n, n, 1, panels + j * deep, 0, n, c);
            for (int r = 0; r < ROWS; r++)
              for (int h = 0; h < 2; h++)
                if (sums && k1 < K)
                  _mm512_storeu_ps(sums + (m + i + r) * N + j + 16 * h, c[r][h]);
                else
                  store16(C + (m + i + r) * N + j + 16 * h, c[r][h]);
          }
      }
    }
    free(strips);
  }
  free(panels);
  free(sums);
}

// The products of attention, batch by batch, leaving out what the mask hides. T tokens a row, start[b][t]: where t's document
// begins. M = G * T rows are G heads that share keys; items of the batch: B rows of the data times their key heads.
//   0: C (M x T) = A (M x 64) B (T x 64)^T, only where a query's tile sees a key's
//   1: C (M x 64) = A (M x T) B (T x 64), A being 0 outside of the mask
//   2: C (T x 64) = A (M x T)^T B (M x 64), likewise
void attention_gemm(const bf* A, const bf* B, bf* C, const int32_t* start, long rows, long key_heads, long G, long T,
                    int kind) {
  long M = G * T;
#pragma omp parallel
  {
    float* panels = aligned_alloc(64, (size_t)(kind == 2 ? M : T) * 64 * 4);
    float* strip = aligned_alloc(64, (size_t)(kind == 2 ? M : T) * ROWS * 4 + 64 * ROWS * 4);
#pragma omp for schedule(dynamic, 1)
    for (long item = 0; item < rows * key_heads; item++) {
      const int32_t* from = start + item / key_heads * T;
      const bf *a = A + item * M * (kind ? T : 64), *b = B + item * (kind == 2 ? M : T) * 64;
      bf* out = C + item * (kind == 0 ? M * T : kind == 1 ? M * 64 : T * 64);
      if (kind == 0)
        for (long j = 0; j < T; j += COLS)
          pack_panel(b, 1, T, 64, j, 0, 64, panels + j * 64);
      else
        for (long j = 0; j < 64; j += COLS)
          pack_panel(b, 0, 64, kind == 1 ? T : M, j, 0, kind == 1 ? T : M, panels + j * (kind == 1 ? T : M));
      for (long m = 0; m < (kind == 2 ? T : M); m += ROWS) {
        long t = m % T, lo = from[t], hi = t + ROWS;
        if (kind == 0) {
          pack_strip(a, 0, M, 64, m, 0, 64, strip);
          for (long j = lo / COLS * COLS; j < hi; j += COLS) {
            __m512 c[ROWS][2] = {{{0}}};
            tile(strip, 64, 1, panels + j * 64, 0, 64, c);
            for (int r = 0; r < ROWS; r++)
              for (int h = 0; h < 2; h++)
                store16(out + (m + r) * T + j + 16 * h, c[r][h]);
          }
          continue;
        }
        __m512 c[2][ROWS][2] = {{{{0}}}};
        if (kind == 1) {
          pack_strip(a, 0, M, T, m, lo, hi, strip);
          for (int j = 0; j < 2; j++)
            tile(strip, hi - lo, 1, panels + j * COLS * T + lo * COLS, 0, hi - lo, c[j]);
        } else {
          long end = m + ROWS;
          while (end < T && from[end] < m + ROWS)
            end++;
          for (long g = 0; g < G; g++) {
            pack_strip(a, 1, T, M, m, g * T + m, g * T + end, strip);
            for (int j = 0; j < 2; j++)
              tile(strip, 1, ROWS, panels + j * COLS * M + (g * T + m) * COLS, 0, end - m, c[j]);
          }
        }
        for (int j = 0; j < 2; j++)
          for (int r = 0; r < ROWS; r++)
            for (int h = 0; h < 2; h++)
              store16(out + (m + r) * 64 + j * COLS + 16 * h, c[j][r][h]);
      }
    }
    free(panels);
    free(strip);
  }
}
#endif
