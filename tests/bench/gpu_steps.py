"""Measures whole training steps of GPT on one GPU, by which what plans predict for planner/machine's GPUs is checked.

  python3 gpu_steps.py OUT.json [seconds]      needs PyTorch and a GPU; all steps: about four minutes

Writes {"device": name, "steps": [[layers, width, heads, context, batch, micro-batches, recompute, seconds, peak bytes,
loss]...]}. A step is what `weft plan --precision bf16` prices: parameters, values and their gradients in bf16, gradients
of parameters added up in f32 by the products that make them, AdamW on f32 masters, attention in one kernel; with
recompute "full" each layer keeps its input alone, and runs again but for its last product, which nothing reads. The
passes of a micro-batch are recorded as a graph. Seconds are the median of three steps after one that warms up; the peak
is that of a step that was not recorded.
"""

import contextlib
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda"
VOCABULARY = 51200
BEGAN = time.time()
LIMIT = float(sys.argv[2]) if len(sys.argv) > 2 else 420.0
RUNS_AGAIN = False  # does a layer run again for its backward pass?


@contextlib.contextmanager
def running_again():
    global RUNS_AGAIN
    RUNS_AGAIN = True
    try:
        yield
    finally:
        RUNS_AGAIN = False


class Product(torch.autograd.Function):
    """x w^T + b; adds the gradients of w and b to `sum_` of these, so backward returns none of its own."""

    @staticmethod
    def forward(ctx, x, weight, bias, is_read_backward):
        ctx.save_for_backward(x, weight)
        ctx.sums = weight.sum_, None if bias is None else bias.sum_
        if RUNS_AGAIN and not is_read_backward:
            return x.new_empty(*x.shape[:-1], weight.shape[0])
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, given):
        x, weight = ctx.saved_tensors
        rows = given.reshape(-1, given.shape[-1])
        of_weight, of_bias = ctx.sums
        torch.addmm(of_weight, rows.t(), x.reshape(-1, x.shape[-1]), out_dtype=torch.float32, out=of_weight)
        if of_bias is not None:
            of_bias += rows.sum(0, dtype=torch.float32)
        return given @ weight, None, None, None


class Linear(torch.nn.Linear):
    is_read_backward = True  # does the backward pass read its result?

    def forward(self, x):
        return Product.apply(x, self.weight, self.bias, self.is_read_backward)


@torch.compile
def gelu(x):
    return F.gelu(x, approximate="tanh")


class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm0, self.norm1 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.proj = Linear(width, 3 * width), Linear(width, width)
        self.fc, self.out = Linear(width, 4 * width), Linear(4 * width, width)
        self.out.is_read_backward = False

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(self.norm0(x)).split(width, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.out(gelu(self.fc(self.norm1(x))))


class Gpt(torch.nn.Module):
    def __init__(self, layers, width, heads, context):
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(VOCABULARY, width), torch.nn.Embedding(context, width)
        self.layers = torch.nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.head = torch.nn.LayerNorm(width), Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens, labels, recompute):
        x = self.tokens(tokens) + self.positions.weight[:tokens.shape[1]]
        for layer in self.layers:
            if recompute == "full":
                x = checkpoint(layer, x, use_reentrant=False, preserve_rng_state=False,
                               context_fn=lambda: (contextlib.nullcontext(), running_again()))
            else:
                x = layer(x)
        return F.cross_entropy(self.head(self.norm(x)).view(-1, VOCABULARY), labels.view(-1))


class Trainer:
    def __init__(self, layers, width, heads, context):
        with torch.device(DEVICE):
            self.model = Gpt(layers, width, heads, context).to(torch.bfloat16)
        self.parameters = list(self.model.parameters())
        for parameter in self.parameters:
            torch.nn.init.normal_(parameter, std=0.02)
            parameter.sum_ = torch.zeros_like(parameter, dtype=torch.float32)
        self.masters = [p.detach().float() for p in self.parameters]
        self.first, self.second = ([torch.zeros_like(m) for m in self.masters] for _ in range(2))
        self.steps = [torch.tensor(0.0, device=DEVICE) for _ in self.masters]

    def pass_of(self, x, y, micro, recompute):
        """Forward and backward pass of one micro-batch; returns its share of the loss."""
        loss = self.model(x, y, recompute) / micro
        loss.backward()
        for parameter in self.parameters:  # of those that no product made
            if parameter.grad is not None:
                parameter.sum_ += parameter.grad
                parameter.grad = None
        return loss.detach()

    def update(self):
        torch._foreach_add_(self.steps, 1)
        sums = [p.sum_ for p in self.parameters]
        torch._fused_adamw_(self.masters, sums, self.first, self.second, [], self.steps, lr=1e-4, beta1=0.9, beta2=0.95,
                            weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False)
        with torch.no_grad():
            torch._foreach_copy_(self.parameters, self.masters)
            torch._foreach_zero_(sums)


def recorded(call):
    """`call` as a graph, whose launches cost the host nothing; it has run before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.empty_cache()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()
    return graph, result


def measure(trainer, context, batch, micro, recompute):
    rows = batch // micro
    tokens, labels = (torch.randint(0, VOCABULARY, (batch, context), device=DEVICE) for _ in range(2))
    x, y = tokens[:rows].clone(), labels[:rows].clone()
    trainer.pass_of(x, y, micro, recompute)
    trainer.update()
    torch.cuda.reset_peak_memory_stats()
    trainer.pass_of(x, y, micro, recompute)
    trainer.update()
    peak = torch.cuda.max_memory_allocated()
    graph, share = recorded(lambda: trainer.pass_of(x, y, micro, recompute))
    trainer.update()
    seconds = []
    for _ in range(3):
        torch.cuda.synchronize()
        began = time.time()
        loss = 0.0
        for i in range(micro):
            x.copy_(tokens[i * rows:(i + 1) * rows])
            y.copy_(labels[i * rows:(i + 1) * rows])
            graph.replay()
            loss += share
        trainer.update()
        loss = loss.item()
        seconds.append(time.time() - began)
    return [statistics.median(seconds), peak, loss]


def trainer_of(*sizes):
    try:
        return Trainer(*sizes)
    except torch.OutOfMemoryError:
        return None


def main():
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "steps": []}
    for layers, width, heads, context, batch, micros in ((24, 1024, 16, 1024, 64, (1, 2, 4, 8, 16, 32)),
                                                         (24, 2048, 16, 2048, 32, (4, 8, 16, 32)),
                                                         (12, 4096, 32, 2048, 16, (4, 8, 16)),
                                                         (6, 8192, 64, 2048, 8, (2, 4, 8))):
        trainer = trainer_of(layers, width, heads, context)
        if trainer is None:
            print(f"{layers} layers of {width} do not fit", flush=True)
            continue
        for micro in micros:
            for recompute in ("none", "full"):
                if time.time() - BEGAN > 0.95 * LIMIT:
                    break
                row = [layers, width, heads, context, batch, micro, recompute]
                try:
                    row += measure(trainer, context, batch, micro, recompute)
                except torch.OutOfMemoryError:
                    row.append("out of memory")
                for parameter in trainer.parameters:
                    parameter.grad = None
                    parameter.sum_.zero_()
                torch.cuda.empty_cache()
                result["steps"].append(row)
                print(f"{time.time() - BEGAN:6.1f} s  {row}", flush=True)
                with open(sys.argv[1], "w", encoding="utf-8") as file:
                    json.dump(result, file)
        del trainer
        torch.cuda.empty_cache()


main()
