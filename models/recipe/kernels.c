// Fused CPU training kernels (bf16 activations, fp32 residual stream), called from train.py by ctypes.
// Built by reproduce.sh.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef uint16_t bf;
static inline float b2f(bf b) {
  union {
    uint32_t u;
    float f;
  } v;
  v.u = (uint32_t)b << 16;
  return v.f;
}
static inline bf f2b(float f) {
  union {
    uint32_t u;
    float f;
  } v;
  v.f = f;
  v.u += 0x7fffu + ((v.u >> 16) & 1u);
  return (bf)(v.u >> 16);
}

// xo = x + delta (delta may be NULL); y = bf16(rmsnorm(xo)*w)
void addnorm_fwd(const float* x, const bf* delta, const float* w, float* xo, bf* y, float* rstd, long N, long D) {
#pragma omp parallel for
  for (long n = 0; n < N; n++) {
    const float* xi = x + n * D;
    float* o = xo + n * D;
    bf* yy = y + n * D;
    float s = 0;
    if (delta) {
      const bf* d = delta + n * D;
      for (long i = 0; i < D; i++) {
        float v = xi[i] + b2f(d[i]);
        o[i] = v;
        s += v * v;
      }
    } else
      for (long i = 0; i < D; i++) {
        float v = xi[i];
        o[i] = v;
        s += v * v;
      }
    float r = 1.f / sqrtf(s / D + 1e-6f);
    rstd[n] = r;
    for (long i = 0; i < D; i++)
      yy[i] = f2b(o[i] * r * w[i]);
  }
}
// dext: gradient reaching xo by the residual path (may be NULL). dx fp32, dd bf16 (may be NULL), dw accumulated.
void addnorm_bwd(const bf* dy, const float* dext, const float* xo, const float* w, const float* rstd, float* dx, bf* dd,
                 float* dw, long N, long D) {
#pragma omp parallel
  {
    float* lw = calloc(D, sizeof(float));
#pragma omp for
    for (long n = 0; n < N; n++) {
      const bf* g = dy + n * D;
      const float* x = xo + n * D;
      float* o = dx + n * D;
      float r = rstd[n], dot = 0;
      for (long i = 0; i < D; i++) {
        float gi = b2f(g[i]);
        float xn = x[i] * r;
        lw[i] += gi * xn;
        dot += gi * w[i] * xn;
      }
      dot /= D;
      if (dext) {
        const float* e = dext + n * D;
        for (long i = 0; i < D; i++)
          o[i] = e[i] + r * (b2f(g[i]) * w[i] - x[i] * r * dot);
      } else
        for (long i = 0; i < D; i++)
          o[i] = r * (b2f(g[i]) * w[i] - x[i] * r * dot);
      if (dd) {
        bf* q = dd + n * D;
        for (long i = 0; i < D; i++)
          q[i] = f2b(o[i]);
      }
    }
#pragma omp critical
    for (long i = 0; i < D; i++)
      dw[i] += lw[i];
    free(lw);
  }
}
void swiglu_fwd(const bf* gu, bf* h, long N, long F) {
#pragma omp parallel for
  for (long n = 0; n < N; n++) {
    const bf *g = gu + n * 2 * F, *u = g + F;
    bf* o = h + n * F;
#pragma omp simd
    for (long i = 0; i < F; i++) {
      float a = b2f(g[i]);
      o[i] = f2b(a / (1.f + expf(-a)) * b2f(u[i]));
    }
  }
}
void swiglu_bwd(const bf* gu, const bf* dh, bf* dgu, long N, long F) {
#pragma omp parallel for
  for (long n = 0; n < N; n++) {
    const bf *g = gu + n * 2 * F, *u = g + F, *d = dh + n * F;
    bf *dg = dgu + n * 2 * F, *du = dg + F;
#pragma omp simd
    for (long i = 0; i < F; i++) {
      float a = b2f(g[i]), uu = b2f(u[i]), dd = b2f(d[i]);
      float s = 1.f / (1.f + expf(-a));
      du[i] = f2b(dd * a * s);
      dg[i] = f2b(dd * uu * s * (1.f + a * (1.f - s)));
    }
  }
}
// qkv [B,T,(Hq+2Hk)*64] -> q [B,Hq,T,64], k,v [B,Hk,T,64]; q,k RMS-normed per head then NeoX RoPE. rs: [B,T,Hq+Hk]
#define HD 64
void qkvrope_fwd(const bf* qkv, const float* wq, const float* wk, const float* cs, const float* sn, bf* q, bf* k, bf* v,
                 float* rs, long B, long T, long Hq, long Hk) {
  long W = (Hq + 2 * Hk) * HD;
#pragma omp parallel for
  for (long bt = 0; bt < B * T; bt++) {
    long b = bt / T, t = bt % T;
    const bf* in = qkv + bt * W;
    const float *c = cs + t * 32, *s = sn + t * 32;
    for (long h = 0; h < Hq + Hk; h++) {
      const bf* x = in + h * HD;
      const float* w = h < Hq ? wq : wk;
      bf* o = h < Hq ? q + ((b * Hq + h) * T + t) * HD : k + ((b * Hk + h - Hq) * T + t) * HD;
      float ss = 0;
      for (int i = 0; i < HD; i++) {
        float a = b2f(x[i]);
        ss += a * a;
      }
      float r = 1.f / sqrtf(ss / HD + 1e-6f);
      rs[bt * (Hq + Hk) + h] = r;
      for (int i = 0; i < 32; i++) {
        float a = b2f(x[i]) * r * w[i], d = b2f(x[i + 32]) * r * w[i + 32];
        o[i] = f2b(a * c[i] - d * s[i]);
        o[i + 32] = f2b(d * c[i] + a * s[i]);
      }
    }
    for (long h = 0; h < Hk; h++)
      memcpy(v + ((b * Hk + h) * T + t) * HD, in + (Hq + Hk + h) * HD, HD * 2);
  }
}
void qkvrope_bwd(const bf* qkv, const float* wq, const float* wk, const float* cs, const float* sn, const bf* dq, const bf* dk,
                 const bf* dv, const float* rs, bf* dqkv, float* dwq, float* dwk, long B, long T, long Hq, long Hk) {
  long W = (Hq + 2 * Hk) * HD;
#pragma omp parallel
  {
    float lq[HD] = {0}, lk[HD] = {0};
#pragma omp for
    for (long bt = 0; bt < B * T; bt++) {
      long b = bt / T, t = bt % T;
      const bf* in = qkv + bt * W;
      bf* out = dqkv + bt * W;
      const float *c = cs + t * 32, *s = sn + t * 32;
      for (long h = 0; h < Hq + Hk; h++) {
        const bf* x = in + h * HD;
        const float* w = h < Hq ? wq : wk;
        float* l = h < Hq ? lq : lk;
        const bf* d = h < Hq ? dq + ((b * Hq + h) * T + t) * HD : dk + ((b * Hk + h - Hq) * T + t) * HD;
        float g[HD], r = rs[bt * (Hq + Hk) + h], dot = 0;
        for (int i = 0; i < 32; i++) {
          float a = b2f(d[i]), e = b2f(d[i + 32]);
          g[i] = a * c[i] + e * s[i];
          g[i + 32] = e * c[i] - a * s[i];
        }
        for (int i = 0; i < HD; i++) {
          float xn = b2f(x[i]) * r;
          l[i] += g[i] * xn;
          dot += g[i] * w[i] * xn;
        }
        dot /= HD;
        bf* o = out + h * HD;
        for (int i = 0; i < HD; i++)
          o[i] = f2b(r * (g[i] * w[i] - b2f(x[i]) * r * dot));
      }
      for (long h = 0; h < Hk; h++)
        memcpy(out + (Hq + Hk + h) * HD, dv + ((b * Hk + h) * T + t) * HD, HD * 2);
    }
#pragma omp critical
    for (int i = 0; i < HD; i++) {
      dwq[i] += lq[i];
      dwk[i] += lk[i];
    }
  }
}
// S [B,H,T,T] in place: softmax over start[b,t]..t of S*scale, zero elsewhere
void softmax_fwd(bf* S, const int32_t* start, float scale, long B, long H, long T) {
#pragma omp parallel for schedule(dynamic, 64)
  for (long r = 0; r < B * H * T; r++) {
    long b = r / (H * T), t = r % T;
    bf* p = S + r * T;
    long lo = start[b * T + t], hi = t + 1;
    float m = -1e30f, s = 0;
    float e[2048];
    for (long i = lo; i < hi; i++) {
      float v = b2f(p[i]);
      m = v > m ? v : m;
    }
#pragma omp simd reduction(+ : s)
    for (long i = lo; i < hi; i++) {
      float v = expf((b2f(p[i]) - m) * scale);
      e[i] = v;
      s += v;
    }
    float inv = 1.f / s;
    memset(p, 0, lo * 2);
    for (long i = lo; i < hi; i++)
      p[i] = f2b(e[i] * inv);
    memset(p + hi, 0, (T - hi) * 2);
  }
}
void softmax_bwd(const bf* P, bf* dP, const int32_t* start, float scale, long B, long H, long T) {
#pragma omp parallel for schedule(dynamic, 64)
  for (long r = 0; r < B * H * T; r++) {
    long b = r / (H * T), t = r % T;
    const bf* p = P + r * T;
    bf* d = dP + r * T;
    long lo = start[b * T + t], hi = t + 1;
    float s = 0;
    for (long i = lo; i < hi; i++)
      s += b2f(p[i]) * b2f(d[i]);
    memset(d, 0, lo * 2);
    for (long i = lo; i < hi; i++)
      d[i] = f2b(b2f(p[i]) * (b2f(d[i]) - s) * scale);
    memset(d + hi, 0, (T - hi) * 2);
  }
}
// logits bf16 [N,V] -> gradient in place (w[n]*(p-onehot)); loss[n] = nll
void xent(bf* L, const int64_t* tgt, const float* w, float* loss, long N, long V) {
#pragma omp parallel for
  for (long n = 0; n < N; n++) {
    bf* l = L + n * V;
    float m = -1e30f, s = 0;
    float e[8192];
    for (long i = 0; i < V; i++) {
      float v = b2f(l[i]);
      m = v > m ? v : m;
    }
    float lt = b2f(l[tgt[n]]);
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < V; i++) {
      float v = expf(b2f(l[i]) - m);
      e[i] = v;
      s += v;
    }
    loss[n] = logf(s) + m - lt;
    float k = w[n] / s;
    for (long i = 0; i < V; i++)
      l[i] = f2b(e[i] * k);
    l[tgt[n]] = f2b(e[tgt[n]] * k - w[n]);
  }
}
// AdamW on an fp32 master; grad bf16 (gb) and/or fp32 (gf); writes the bf16 copy (pb may be NULL). gs: gradient scale (clip)
void adamw(float* p, bf* pb, const bf* gb, const float* gf, float* m, float* v, long n, float lr, float b1, float b2, float eps,
           float wd, float c1, float c2, float gs) {
#pragma omp parallel for
  for (long i = 0; i < n; i++) {
    float g = ((gb ? b2f(gb[i]) : 0.f) + (gf ? gf[i] : 0.f)) * gs;
    float mm = b1 * m[i] + (1 - b1) * g, vv = b2 * v[i] + (1 - b2) * g * g;
    m[i] = mm;
    v[i] = vv;
    float q = p[i];
    q -= lr * (mm * c1 / (sqrtf(vv * c2) + eps) + wd * q);
    p[i] = q;
    if (pb)
      pb[i] = f2b(q);
  }
}
