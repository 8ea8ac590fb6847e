"""Measures the kernels of transformer steps on one GPU, by which planner/machine's files of GPUs are checked.

  python3 gpu_kernels.py OUT.json [seconds [section...]]      needs PyTorch and a GPU; all sections: about four minutes

Writes {"device": name, "products": [[kind, type, batch, m, n, k, seconds]...], "moves": [[name, bytes, seconds]...],
"attention": [[pass, batch, heads, length, head, seconds]...], "launch": seconds, "copies": {...}, "steps": [...],
"accumulations": [[m, n, k, {how: seconds}]...]}.

Each figure is the median of several runs, each long enough for the GPU's clock to say; operands are random, as products
of zeros are faster than others, and lie in different memory from run to run where they would fit in a cache.
"""

import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

DEVICE = "cuda"
BEGAN = time.time()
LIMIT = float(sys.argv[2]) if len(sys.argv) > 2 else 420.0


def late(share):
    return time.time() - BEGAN > share * LIMIT


def seconds_of(call, variants=1, budget=0.03, as_graph=True):
    """Median seconds of call(i), i below `variants`, over five rounds of about `budget` seconds.

    As a graph, the launches cost the host nothing; what differentiates cannot be one.
    """
    calls = variants * max(1, 8 // variants)

    def run():
        for i in range(calls):
            call(i % variants)
    run()
    torch.cuda.synchronize()
    if as_graph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        run = graph.replay
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    run()
    start.record()
    run()
    end.record()
    torch.cuda.synchronize()
    rounds = max(1, min(200, int(budget / max(start.elapsed_time(end) * 1e-3, 1e-5))))
    found = []
    for _ in range(5):
        start.record()
        for _ in range(rounds):
            run()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end) * 1e-3 / rounds / calls)
    return statistics.median(found)


def operands(shape, dtype, bytes_apart=1 << 28):
    """As many tensors of one shape as hold `bytes_apart`, at most 8."""
    size = torch.tensor([], dtype=dtype).element_size()
    for length in shape:
        size *= length
    return [torch.randn(shape, device=DEVICE, dtype=dtype) for _ in range(max(1, min(8, bytes_apart // size)))]


def product_seconds(kind, dtype, batch, m, n, k):
    """c[m, n] = a[m, k] b[k, n]; b is stored transposed where kind is "nt", a where it is "tn"."""
    lead = [] if batch == 1 else [batch]
    left = operands(lead + ([k, m] if kind == "tn" else [m, k]), dtype)
    right = operands(lead + ([n, k] if kind == "nt" else [k, n]), dtype)
    out = torch.empty(lead + [m, n], device=DEVICE, dtype=dtype)
    a = [x.transpose(-1, -2) if kind == "tn" else x for x in left]
    b = [x.transpose(-1, -2) if kind == "nt" else x for x in right]
    return seconds_of(lambda i: torch.matmul(a[i % len(a)], b[i % len(b)], out=out), max(len(a), len(b)))


def products():
    shapes = []
    for width, heads_of in ((12288, (1, 2, 4, 8, 16)), (8192, (1, 4, 8)), (5120, (1, 4)), (4096, (1, 2, 8)), (2048, (1, 4)),
                            (1024, (1,))):
        for tokens in (1024, 2048, 4096, 8192, 16384):
            for tp in heads_of:
                for n, k in ((3 * width // tp, width), (width, width // tp), (4 * width // tp, width),
                             (width, 4 * width // tp)):
                    if tokens * n * k <= 2 ** 42:
                        shapes += [("nn", tokens, n, k), ("nt", tokens, k, n), ("tn", k, n, tokens)]
    for tokens in (2048, 8192):
        shapes += [("nn", tokens, 51200, 4096), ("nn", tokens, 6400, 12288), ("tn", 12288, 6400, tokens)]
    shapes += [("nn", 64, 4096, 4096), ("nn", 128, 1024, 1024), ("nn", 256, 256, 256), ("nn", 512, 512, 512)]
    found = []
    for kind, m, n, k in dict.fromkeys(shapes):
        if not late(0.45):
            found.append([kind, "bf16", 1, m, n, k, product_seconds(kind, torch.bfloat16, 1, m, n, k)])
    for batch, m, n, k in ((96, 2048, 2048, 128), (96, 2048, 128, 2048), (12, 2048, 2048, 128), (384, 512, 512, 64)):
        found.append(["nn", "bf16", batch, m, n, k, product_seconds("nn", torch.bfloat16, batch, m, n, k)])
    for m, n, k in ((2048, 4096, 4096), (8192, 4096, 4096), (1024, 1024, 1024), (4096, 16384, 4096)):
        for name, dtype in (("f32", torch.float32), ("f16", torch.float16)):
            found.append(["nn", name, 1, m, n, k, product_seconds("nn", dtype, 1, m, n, k)])
    return found


def accumulations():
    """Gradients of a weight of m x n over k tokens, bf16, added to what other micro-batches made, f32.

    The product alone, into either type; the sum in a kernel of its own; both in one kernel, where the library has it.
    """
    found = []
    for m, n in ((12288, 9216), (12288, 3072), (12288, 12288), (12288, 6144), (4096, 4096), (4096, 16384), (2048, 8192)):
        for k in (2048, 4096, 8192):
            left, right = operands([k, m], torch.bfloat16), operands([k, n], torch.bfloat16)
            many = min(len(left), len(right))
            total = torch.zeros(m, n, device=DEVICE)
            narrow, wide = torch.empty(m, n, device=DEVICE, dtype=torch.bfloat16), torch.empty(m, n, device=DEVICE)
            ways = {
                "product": lambda i: torch.mm(left[i].t(), right[i], out=narrow),
                "product_f32": lambda i: torch.mm(left[i].t(), right[i], out_dtype=torch.float32, out=wide),
                "sum": lambda i: total.add_(narrow),
                "sum_f32": lambda i: total.add_(wide),
                "both": lambda i: torch.addmm(total, left[i].t(), right[i], out_dtype=torch.float32, out=total),
            }
            seconds = {}
            for how, call in ways.items():
                try:
                    seconds[how] = seconds_of(call, many)
                except (RuntimeError, TypeError) as error:
                    seconds[how] = str(error)[:80]
            found.append([m, n, k, seconds])
    return found


def sustained():
    """Rate of one large product, run for three seconds: what the power limit leaves."""
    a, b = (torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    torch.matmul(a, b)
    torch.cuda.synchronize()
    began, count = time.time(), 0
    while time.time() - began < 3:
        for _ in range(50):
            torch.matmul(a, b)
        torch.cuda.synchronize()
        count += 50
    return 2 * 8192 ** 3 * count / (time.time() - began)


def moves():
    found = []
    for rows, columns in ((128, 1024), (512, 4096), (2048, 4096), (2048, 12288), (8192, 12288), (16384, 16384)):
        size = rows * columns * 2
        x, y = operands([rows, columns], torch.bfloat16), operands([rows, columns], torch.bfloat16)
        n = len(x)
        out = torch.empty_like(x[0])
        scale, shift = torch.randn(columns, device=DEVICE, dtype=torch.bfloat16), torch.randn(
            columns, device=DEVICE, dtype=torch.bfloat16)
        mask = torch.rand(rows, columns, device=DEVICE) > 0.1
        wide = operands([rows, columns], torch.float32)
        master, first, second = (torch.rand(rows, columns, device=DEVICE) for _ in range(3))

        def timed(name, nbytes, call):
            found.append([name, nbytes, seconds_of(call, n)])

        timed("copy", 2 * size, lambda i: out.copy_(x[i]))
        timed("add", 3 * size, lambda i: torch.add(x[i], y[i], out=out))
        timed("gelu", 2 * size, lambda i: F.gelu(x[i], approximate="tanh"))
        timed("gelu_grad", 3 * size, lambda i: torch.ops.aten.gelu_backward(y[i], x[i], approximate="tanh"))
        timed("bias_add", 2 * size, lambda i: torch.add(x[i], shift, out=out))
        timed("dropout", 2 * size + size // 2, lambda i: torch.native_dropout(x[i], 0.1, True))
        timed("masked", 2 * size + size // 2, lambda i: torch.mul(x[i], mask, out=out))
        timed("layer_norm", 2 * size, lambda i: F.layer_norm(x[i], [columns], scale, shift))
        made, mean, rstd = torch.ops.aten.native_layer_norm(x[0], [columns], scale, shift, 1e-5)
        timed("layer_norm_grad", 3 * size, lambda i: torch.ops.aten.native_layer_norm_backward(
            y[i], x[i], [columns], mean, rstd, scale, shift, [True, True, True]))
        timed("softmax", 2 * size, lambda i: torch.softmax(x[i], -1))
        timed("sum_rows", size, lambda i: torch.sum(x[i], 0))
        timed("cast", 3 * size, lambda i: out.copy_(wide[i % len(wide)]))
        timed("transpose", 2 * size, lambda i: x[i].t().contiguous())

        steps = [torch.tensor(1.0, device=DEVICE)]

        def update(i):
            torch._fused_adamw_([master], [wide[i % len(wide)]], [first], [second], [], steps, lr=1e-4, beta1=0.9,
                                beta2=0.95, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False)
        timed("adamw", 7 * 2 * size, update)
        if rows * columns >= 2 ** 23 and columns < 16384:
            logits = torch.randn(rows, 51200, device=DEVICE, dtype=torch.bfloat16)
            labels = torch.randint(0, 51200, (rows,), device=DEVICE)
            found.append(["log_softmax", 4 * rows * 51200, seconds_of(lambda i: F.log_softmax(logits, -1))])
            del logits
            found.append(["embedding", 2 * size, seconds_of(lambda i: F.embedding(labels % rows, x[0]))])
    return found


def attention():
    found = []
    for batch, heads, length, head in ((1, 12, 2048, 128), (1, 96, 2048, 128), (4, 32, 2048, 128), (2, 16, 8192, 128),
                                       (16, 16, 1024, 64), (1, 12, 1024, 128)):
        q, k, v = (torch.randn(batch, heads, length, head, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
                   for _ in range(3))
        for name, backend in (("flash", torch.nn.attention.SDPBackend.FLASH_ATTENTION),
                              ("cudnn", torch.nn.attention.SDPBackend.CUDNN_ATTENTION)):
            try:
                with torch.nn.attention.sdpa_kernel(backend):
                    def forward(_=0):
                        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
                    made = forward()
                    given = torch.randn_like(made)
                    found.append([name, "forward", batch, heads, length, head, seconds_of(forward, as_graph=False)])

                    def both(_=0):
                        torch.autograd.grad(forward(), (q, k, v), given)
                    found.append([name, "both", batch, heads, length, head, seconds_of(both, as_graph=False)])
            except RuntimeError as error:
                found.append([name, str(error)[:80]])
    return found


def launches():
    """Seconds between small kernels that a graph holds, and that the host launches one by one."""
    x = torch.zeros(16, device=DEVICE)
    for _ in range(3):
        x.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(1000):
            x.add_(1)
    torch.cuda.synchronize()
    began = time.time()
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
    within = (time.time() - began) / 20000
    began = time.time()
    for _ in range(2000):
        x.add_(1)
    torch.cuda.synchronize()
    return {"graph": within, "stream": (time.time() - began) / 2000}


def copies():
    host = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
    device = torch.empty(1 << 28, dtype=torch.uint8, device=DEVICE)
    return {"to_device": (1 << 28) / seconds_of(lambda i: device.copy_(host, non_blocking=True)),
            "to_host": (1 << 28) / seconds_of(lambda i: host.copy_(device, non_blocking=True))}


class Layer(torch.nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads, self.inner = heads, inner
        self.norm0, self.norm1 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * inner), torch.nn.Linear(inner, width)
        self.fc, self.proj = torch.nn.Linear(width, 4 * inner), torch.nn.Linear(4 * inner, width)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(self.norm0(x)).split(self.inner, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, self.inner))
        return x + self.proj(F.gelu(self.fc(self.norm1(x)), approximate="tanh"))


def layers():
    """[width, local heads, rows, how, forward seconds, forward and backward seconds] of a layer of GPT, tp ways split."""
    found = []
    for width, heads, inner, batch in ((12288, 12, 1536, 1), (12288, 12, 1536, 2), (12288, 24, 3072, 1),
                                       (4096, 32, 4096, 4), (2048, 16, 2048, 8)):
        layer = Layer(width, heads, inner).to(DEVICE, torch.bfloat16)
        x = torch.randn(batch, 2048, width, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
        given = torch.randn_like(x)
        for how in ("eager", "compiled"):
            if late(0.9):
                break
            torch.compiler.reset()
            run = layer if how == "eager" else torch.compile(layer)

            def both(_=0):
                torch.autograd.grad(run(x), [x, *layer.parameters()], given)

            def forward(_=0):
                with torch.no_grad():
                    run(x)
            found.append([width, heads, batch * 2048, how, seconds_of(forward, budget=0.1, as_graph=False),
                          seconds_of(both, budget=0.1, as_graph=False)])
    return found


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name, measure in (("launch", launches), ("copies", copies), ("sustained", sustained), ("moves", moves),
                          ("attention", attention), ("products", products), ("layers", layers),
                          ("accumulations", accumulations)):
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        result[name] = measure()
        print(f"{time.time() - BEGAN:6.1f} s  {name}: {str(result[name])[:400]}", flush=True)
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump(result, file)


main()
