"""The network: Qwen3's math for training on a CPU (bf16 matrix products by oneDNN, fused C kernels for the rest, fp32 masters),
and a plain fp32 reference for evaluation. kernels.so is built by reproduce.sh."""

import ctypes
import math
import os

import torch
import torch.nn.functional as F

from work import work_file

K = ctypes.CDLL(work_file("kernels.so")) if os.path.exists(work_file("kernels.so")) else None  # training only
L_, F_ = ctypes.c_long, ctypes.c_float


def P(t):
    return ctypes.c_void_p(t.data_ptr() if t is not None else None)


BF = torch.bfloat16
CPU = open("/proc/cpuinfo").read()
# Without AVX-512, oneDNN's bf16 products are hundreds of times slower than float32 ones.
FAST_BF16 = "avx512bw" in CPU
# Intel's CPUs without AMX: gemm.c's float32 products are twice as fast as oneDNN's bf16 ones, as are those that skip what is masked.
OWN_PRODUCTS = K is not None and FAST_BF16 and "GenuineIntel" in CPU and "amx_bf16" not in CPU


def product(a, b, a_transposed, b_transposed):
    """a b of bf16 matrices, either of them given transposed."""
    m, k = reversed(a.shape) if a_transposed else a.shape
    n = b.shape[0] if b_transposed else b.shape[1]
    out = torch.empty(m, n, dtype=BF)
    K.gemm(P(a), P(b), P(out), L_(m), L_(n), L_(k), ctypes.c_int(a_transposed), ctypes.c_int(b_transposed))
    return out


class OwnLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        x = x.contiguous()
        ctx.save_for_backward(x, w)
        return product(x, w, 0, 1)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        g = g.contiguous()
        return product(g, w, 0, 0), product(g, x, 1, 0)


def linear(x, w):
    """x W^T in bf16."""
    if OWN_PRODUCTS:
        return OwnLinear.apply(x, w)
    return F.linear(x, w) if FAST_BF16 else F.linear(x.float(), w.float()).to(BF)


def products(a, b):
    """A batch of matrix products in bf16."""
    return torch.bmm(a, b) if FAST_BF16 else torch.bmm(a.float(), b.float()).to(BF)


def scores(a, b, start):
    """a b^T for queries a and keys b, batch by batch; anything where the mask hides it."""
    return attention_product(a, b, start, 0) if OWN_PRODUCTS else products(a, b.transpose(1, 2))


def gathered(s, b, start):
    """s b, s being 0 outside of the mask."""
    return attention_product(s, b, start, 1) if OWN_PRODUCTS else products(s, b)


def scattered(s, b, start):
    """s^T b, s being 0 outside of the mask."""
    return attention_product(s, b, start, 2) if OWN_PRODUCTS else products(s.transpose(1, 2), b)


def attention_product(a, b, start, kind):
    (items, queries, _), (rows, T) = a.shape, start.shape
    out = torch.empty(items, *((queries, T), (queries, 64), (T, 64))[kind], dtype=BF)
    K.attention_gemm(P(a), P(b), P(out), P(start), L_(rows), L_(items // rows), L_(queries // T), L_(T), ctypes.c_int(kind))
    return out


class Cfg:
    vocab = 3072
    dim = 256
    layers = 6
    hq = 4
    hk = 2
    hd = 64
    ffn = 768
    theta = 1e4
    eps = 1e-6
    max_pos = 2048


def rope(T, theta=Cfg.theta):
    f = 1.0 / (theta ** (torch.arange(0, 64, 2).float() / 64))
    a = torch.arange(T).float()[:, None] * f
    return a.cos().contiguous(), a.sin().contiguous()


class AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, delta, w):
        N, D = x.shape
        xo = torch.empty_like(x)
        y = torch.empty(N, D, dtype=BF)
        r = torch.empty(N)
        K.addnorm_fwd(P(x), P(delta), P(w), P(xo), P(y), P(r), L_(N), L_(D))
        ctx.save_for_backward(xo, w, r)
        ctx.hasd = delta is not None
        return xo, y

    @staticmethod
    def backward(ctx, dxo, dy):
        xo, w, r = ctx.saved_tensors
        N, D = xo.shape
        dy = dy.contiguous()
        dxo = dxo.contiguous() if dxo is not None else None
        dx = torch.empty_like(xo)
        dd = torch.empty(N, D, dtype=BF) if ctx.hasd else None
        dw = torch.zeros(D)
        K.addnorm_bwd(P(dy), P(dxo), P(xo), P(w), P(r), P(dx), P(dd), P(dw), L_(N), L_(D))
        return dx, dd, dw


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gu):
        N, F2 = gu.shape
        h = torch.empty(N, F2 // 2, dtype=BF)
        K.swiglu_fwd(P(gu), P(h), L_(N), L_(F2 // 2))
        ctx.save_for_backward(gu)
        return h

    @staticmethod
    def backward(ctx, dh):
        (gu,) = ctx.saved_tensors
        N, F2 = gu.shape
        dh = dh.contiguous()
        d = torch.empty_like(gu)
        K.swiglu_bwd(P(gu), P(dh), P(d), L_(N), L_(F2 // 2))
        return d


class Attn(torch.autograd.Function):
    """Fused QKV split, q/k RMSNorm, RoPE and document-masked causal GQA attention."""

    @staticmethod
    def forward(ctx, qkv, wq, wk, cs, sn, start, B, T):
        hq, hk = Cfg.hq, Cfg.hk
        q = torch.empty(B, hq, T, 64, dtype=BF)
        k = torch.empty(B, hk, T, 64, dtype=BF)
        v = torch.empty(B, hk, T, 64, dtype=BF)
        rs = torch.empty(B * T, hq + hk)
        K.qkvrope_fwd(P(qkv), P(wq), P(wk), P(cs), P(sn), P(q), P(k), P(v), P(rs), L_(B), L_(T), L_(hq), L_(hk))
        g = hq // hk
        q3, k3, v3 = q.view(B * hk, g * T, 64), k.view(B * hk, T, 64), v.view(B * hk, T, 64)
        S = scores(q3, k3, start)
        K.softmax_fwd(P(S), P(start), F_(0.125), L_(B), L_(hq), L_(T))
        O = gathered(S, v3, start)
        ctx.save_for_backward(qkv, wq, wk, cs, sn, start, q3, k3, v3, S, rs)
        ctx.bt = (B, T)
        return O.view(B, hq, T, 64).transpose(1, 2).reshape(B * T, hq * 64)

    @staticmethod
    def backward(ctx, dO):
        qkv, wq, wk, cs, sn, start, q, k, v, S, rs = ctx.saved_tensors
        B, T = ctx.bt
        hq, hk = Cfg.hq, Cfg.hk
        dO = dO.view(B, T, hq, 64).transpose(1, 2).contiguous().view(B * hk, -1, 64)
        dv = scattered(S, dO, start)
        dS = scores(dO, v, start)
        K.softmax_bwd(P(S), P(dS), P(start), F_(0.125), L_(B), L_(hq), L_(T))
        dq = gathered(dS, k, start)
        dk = scattered(dS, q, start)
        d = torch.empty_like(qkv)
        dwq = torch.zeros(64)
        dwk = torch.zeros(64)
        dq, dk, dv = dq.contiguous(), dk.contiguous(), dv.contiguous()
        K.qkvrope_bwd(
            P(qkv), P(wq), P(wk), P(cs), P(sn), P(dq), P(dk), P(dv), P(rs), P(d), P(dwq), P(dwk), L_(B), L_(T), L_(hq), L_(hk)
        )
        return d, dwq, dwk, None, None, None, None, None


class Xent(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, tgt, w):
        loss = torch.empty(logits.shape[0])
        K.xent(P(logits), P(tgt), P(w), P(loss), L_(logits.shape[0]), L_(logits.shape[1]))
        ctx.save_for_backward(logits)
        ctx.mark_non_differentiable(loss)
        return (loss * w).sum(), loss

    @staticmethod
    def backward(ctx, g, _):
        return ctx.saved_tensors[0], None, None


def init_masters(seed):
    """fp32 masters; QKV and gate/up are stored fused and split on export."""
    g = torch.Generator().manual_seed(seed)
    c = Cfg
    n = lambda *s, std=0.02: torch.randn(*s, generator=g) * std
    p = {"embed": n(c.vocab, c.dim, std=0.04), "norm": torch.ones(c.dim)}
    for l in range(c.layers):
        p[f"{l}.qkv"] = n((c.hq + 2 * c.hk) * c.hd, c.dim, std=0.05)
        p[f"{l}.o"] = n(c.dim, c.hq * c.hd, std=0.05 / math.sqrt(2 * c.layers))
        p[f"{l}.gu"] = n(2 * c.ffn, c.dim, std=0.05)
        p[f"{l}.down"] = n(c.dim, c.ffn, std=0.03 / math.sqrt(2 * c.layers))
        p[f"{l}.ln1"] = torch.ones(c.dim)
        p[f"{l}.ln2"] = torch.ones(c.dim)
        p[f"{l}.qn"] = torch.ones(64)
        p[f"{l}.kn"] = torch.ones(64)
    return p


def forward_train(p, pb, ids, start, cs, sn):
    """p: fp32 leaves (embedding, norms); pb: bf16 leaves (matrices). ids [B,T] -> final hidden bf16 [B*T, D]."""
    B, T = ids.shape
    x = F.embedding(ids.reshape(-1), p["embed"])
    d = None
    for l in range(Cfg.layers):
        x, y = AddNorm.apply(x, d, p[f"{l}.ln1"])
        a = Attn.apply(linear(y, pb[f"{l}.qkv"]), p[f"{l}.qn"], p[f"{l}.kn"], cs, sn, start, B, T)
        x, y = AddNorm.apply(x, linear(a, pb[f"{l}.o"]), p[f"{l}.ln2"])
        d = linear(SwiGLU.apply(linear(y, pb[f"{l}.gu"])), pb[f"{l}.down"])
    return AddNorm.apply(x, d, p["norm"])[1]


# ---- plain fp32 reference with a KV cache, used by eval.py, export.py and the golden file ----
def rms(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + Cfg.eps) * w


class Ref:
    """Batched fp32 inference, right-aligned by per-row lengths: rows advance on their own positions."""

    def __init__(self, p, round_bf16=True):
        self.p = {k: (v.detach().to(BF).float() if round_bf16 else v.detach().float()) for k, v in p.items()}
        self.cs, self.sn = rope(Cfg.max_pos)

    @torch.no_grad()
    def step(self, ids, pos, cache, valid):
        """ids, pos [B,T]; cache list of (k,v) or None; valid [B,S] key mask incl. the new ones. Returns logits [B,T,V]."""
        p, c = self.p, Cfg
        B, T = ids.shape
        x = p["embed"][ids]
        cs, sn = self.cs[pos][:, None], self.sn[pos][:, None]

        def rot(z):
            a, b = z[..., :32], z[..., 32:]
            return torch.cat([a * cs - b * sn, b * cs + a * sn], -1)

        S = valid.shape[1]
        off = S - T
        mask = (torch.arange(S)[None, :] <= (torch.arange(T)[:, None] + off))[None] & valid[:, None, :]
        bias = torch.zeros(B, 1, T, S).masked_fill(~mask[:, None], -1e30)
        new = []
        for l in range(c.layers):
            y = rms(x, p[f"{l}.ln1"])
            z = y @ p[f"{l}.qkv"].T
            q, k, v = z.split([c.hq * 64, c.hk * 64, c.hk * 64], -1)
            q = rot(rms(q.view(B, T, c.hq, 64), p[f"{l}.qn"]).transpose(1, 2))
            k = rot(rms(k.view(B, T, c.hk, 64), p[f"{l}.kn"]).transpose(1, 2))
            v = v.view(B, T, c.hk, 64).transpose(1, 2)
            if cache:
                k = torch.cat([cache[l][0], k], 2)
                v = torch.cat([cache[l][1], v], 2)
            new.append((k, v))
            g = c.hq // c.hk
            a = torch.softmax(q @ k.repeat_interleave(g, 1).transpose(2, 3) * 0.125 + bias, -1) @ v.repeat_interleave(g, 1)
            x = x + a.transpose(1, 2).reshape(B, T, -1) @ p[f"{l}.o"].T
            gg, u = (rms(x, p[f"{l}.ln2"]) @ p[f"{l}.gu"].T).chunk(2, -1)
            x = x + (F.silu(gg) * u) @ p[f"{l}.down"].T
        return rms(x, p["norm"]) @ p["embed"].T, new

    def generate(self, prompts, n, stop):
        """Greedy continuation of a list of id lists (left-padded batch). Returns lists without the stop token."""
        B, T = len(prompts), max(map(len, prompts))
        ids = torch.zeros(B, T, dtype=torch.long)
        valid = torch.zeros(B, T, dtype=torch.bool)
        for i, q in enumerate(prompts):
            ids[i, T - len(q) :] = torch.tensor(q)
            valid[i, T - len(q) :] = True
        pos = (valid.long().cumsum(1) - 1).clamp(min=0)
        lg, cache = self.step(ids, pos, None, valid)
        out = [[] for _ in prompts]
        done = [False] * B
        last = pos[:, -1]
        for _ in range(n):
            nx = lg[:, -1].argmax(-1)
            for i, t in enumerate(nx.tolist()):
                if not done[i]:
                    if t in stop:
                        done[i] = True
                    else:
                        out[i].append(t)
            if all(done):
                break
            valid = torch.cat([valid, torch.ones(B, 1, dtype=torch.bool)], 1)
            last = last + 1
            lg, cache = self.step(nx[:, None], last[:, None], cache, valid)
        return out
