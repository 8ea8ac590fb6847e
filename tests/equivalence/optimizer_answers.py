r"""Prints the table of tests/equivalence/optimizer_answers.h: parameters after three steps, with 40 digits.

    python3 tests/equivalence/optimizer_answers.py | clang-format-19 --assume-filename=a.h \
        > tests/equivalence/optimizer_answers.h    # needs mpmath

Written from the formulas, element by element, and from no code of Weft: PyTorch's documentation of torch.optim for SGD,
Adam, AdamW, Adagrad, RMSprop and Adafactor; You et al. 2020, algorithm 2, for LAMB; Chen et al. 2023, algorithm 2, for
Lion. A matrix w (2 x 3) and a vector b (3) have the gradients below. `groups`: b has half the learning rate and no
weight decay.
"""

from mpmath import mp, mpf, sqrt

mp.dps = 40
F = lambda text: mpf(text)
W = [[F("0.5"), F(-1), F(2)], [F("1.5"), F("-0.25"), F(1)]]
B = [[F(1), F(-2), F("0.5")]]
GRADIENTS_W = [
    [[F(1), F(-2), F("0.5")], [F(3), F("0.25"), F(-1)]],
    [[F("-0.5"), F(1), F(2)], [F(1), F(-3), F("0.75")]],
    [[F("0.25"), F("1.5"), F(-1)], [F(-2), F(1), F(4)]],
]
GRADIENTS_B = [[[F(2), F("-0.5"), F(1)]], [[F(1), F(3), F("-0.25")]], [[F(-4), F("0.5"), F("1.25")]]]
LR = F("0.125")


def each(f, *tensors):
    return [[f(*values) for values in zip(*rows)] for rows in zip(*tensors)]


def norm(t):
    return sqrt(sum(x * x for row in t for x in row))


def count(t):
    return sum(len(row) for row in t)


def zeros(t):
    return each(lambda x: mpf(0), t)


def sgd(p, gradients, lr, wd, momentum, dampening=mpf(0), nesterov=False):
    buffer = None
    for g in gradients:
        d = each(lambda g, p: g + wd * p, g, p)
        buffer = d if buffer is None else each(lambda b, d: momentum * b + (1 - dampening) * d, buffer, d)
        step = each(lambda d, b: d + momentum * b, d, buffer) if nesterov else buffer
        p = each(lambda p, s: p - lr * s, p, step)
    return p


def moments(gradients, b1, b2):
    m = v = None
    for t, g in enumerate(gradients, 1):
        m = each(lambda m, g: b1 * m + (1 - b1) * g, m or zeros(g), g)
        v = each(lambda v, g: b2 * v + (1 - b2) * g * g, v or zeros(g), g)
        yield each(lambda m: m / (1 - b1**t), m), each(lambda v: v / (1 - b2**t), v)


def adam(p, gradients, lr, wd, b1, b2, eps):
    m, v = zeros(p), zeros(p)
    for t, g in enumerate(gradients, 1):
        g = each(lambda g, p: g + wd * p, g, p)
        m = each(lambda m, g: b1 * m + (1 - b1) * g, m, g)
        v = each(lambda v, g: b2 * v + (1 - b2) * g * g, v, g)
        p = each(lambda p, m, v: p - lr * (m / (1 - b1**t)) / (sqrt(v / (1 - b2**t)) + eps), p, m, v)
    return p


def adamw(p, gradients, lr, wd, b1, b2, eps):
    for m, v in moments(gradients, b1, b2):
        p = each(lambda p, m, v: p * (1 - lr * wd) - lr * m / (sqrt(v) + eps), p, m, v)
    return p


def adagrad(p, gradients, lr, wd, lr_decay, initial, eps):
    s = each(lambda x: initial, p)
    for t, g in enumerate(gradients, 1):
        g = each(lambda g, p: g + wd * p, g, p)
        s = each(lambda s, g: s + g * g, s, g)
        rate = lr / (1 + (t - 1) * lr_decay)
        p = each(lambda p, g, s: p - rate * g / (sqrt(s) + eps), p, g, s)
    return p


def rmsprop(p, gradients, lr, wd, alpha, eps, momentum=mpf(0), centered=False):
    v, mean, buffer = zeros(p), zeros(p), zeros(p)
    for g in gradients:
        g = each(lambda g, p: g + wd * p, g, p)
        v = each(lambda v, g: alpha * v + (1 - alpha) * g * g, v, g)
        mean = each(lambda m, g: alpha * m + (1 - alpha) * g, mean, g)
        variance = each(lambda v, m: v - m * m if centered else v, v, mean)
        u = each(lambda g, v: g / (sqrt(v) + eps), g, variance)
        buffer = each(lambda b, u: momentum * b + u, buffer, u)
        p = each(lambda p, b: p - lr * b, p, buffer)
    return p


def lamb(p, gradients, lr, wd, b1, b2, eps):
    for m, v in moments(gradients, b1, b2):
        u = each(lambda m, v, p: m / (sqrt(v) + eps) + wd * p, m, v, p)
        rate = lr * norm(p) / norm(u)
        p = each(lambda p, u: p - rate * u, p, u)
    return p


def lion(p, gradients, lr, wd, b1, b2):
    m = zeros(p)
    for g in gradients:
        c = each(lambda m, g: b1 * m + (1 - b1) * g, m, g)
        assert all(abs(x) > mpf("1e-6") for row in c for x in row)
        p = each(lambda p, c: p * (1 - lr * wd) - lr * (1 if c > 0 else -1), p, c)
        m = each(lambda m, g: b2 * m + (1 - b2) * g, m, g)
    return p


def adafactor(p, gradients, lr, wd, decay, eps1, eps2, d):
    is_matrix = len(p) > 1
    rows, columns, v = [mpf(0)] * len(p), [mpf(0)] * len(p[0]), zeros(p)
    for t, g in enumerate(gradients, 1):
        w = mpf(t) ** decay
        if is_matrix:
            rows = [(1 - w) * r + w * sum(x * x for x in row) / len(row) for r, row in zip(rows, g)]
            columns = [(1 - w) * c + w * sum(row[j] ** 2 for row in g) / len(g) for j, c in enumerate(columns)]
            whole = max(sum(rows) / len(rows), eps1)
            estimate = [[r * c / whole for c in columns] for r in rows]
        else:
            v = each(lambda v, g: (1 - w) * v + w * g * g, v, g)
            estimate = v
        u = each(lambda e, g: g / sqrt(max(e, eps1 * eps1)), estimate, g)
        alpha = max(eps2, norm(p) / sqrt(count(p))) * min(lr, 1 / sqrt(mpf(t)))
        clip = max(mpf(1), norm(u) / (sqrt(count(u)) * d))
        p = each(lambda p, u: p * (1 - lr * wd) - alpha / clip * u, p, u)
    return p


B1, B2, EPS, WD = F("0.9"), F("0.99"), F("0.001"), F("0.1")
ADAM = "beta1 = 0.9, beta2 = 0.99, epsilon = 0.001, weight_decay = 0.1"
GROUPS = ', groups = [["b", {lr_factor = 0.5, weight_decay = 0.0}]]'
CASES = [
    ("SgdPlain", 'kind = "sgd", weight_decay = 0.1', lambda p, g, lr, wd: sgd(p, g, lr, wd, mpf(0))),
    ("SgdMomentum", 'kind = "sgd", momentum = 0.9, weight_decay = 0.1', lambda p, g, lr, wd: sgd(p, g, lr, wd, B1)),
    ("SgdNesterov", 'kind = "sgd", momentum = 0.9, nesterov = true, weight_decay = 0.1',
     lambda p, g, lr, wd: sgd(p, g, lr, wd, B1, nesterov=True)),
    ("SgdDampened", 'kind = "sgd", momentum = 0.9, dampening = 0.25, weight_decay = 0.1',
     lambda p, g, lr, wd: sgd(p, g, lr, wd, B1, F("0.25"))),
    ("Adam", f'kind = "adam", {ADAM}', lambda p, g, lr, wd: adam(p, g, lr, wd, B1, B2, EPS)),
    ("AdamW", f'kind = "adamw", {ADAM}', lambda p, g, lr, wd: adamw(p, g, lr, wd, B1, B2, EPS)),
    ("Adagrad", 'kind = "adagrad", lr_decay = 0.5, initial = 0.25, epsilon = 0.001, weight_decay = 0.1',
     lambda p, g, lr, wd: adagrad(p, g, lr, wd, F("0.5"), F("0.25"), EPS)),
    ("RmsProp", 'kind = "rmsprop", alpha = 0.9, epsilon = 0.001, weight_decay = 0.1',
     lambda p, g, lr, wd: rmsprop(p, g, lr, wd, B1, EPS)),
    ("RmsPropMomentum", 'kind = "rmsprop", alpha = 0.9, epsilon = 0.001, weight_decay = 0.1, momentum = 0.5',
     lambda p, g, lr, wd: rmsprop(p, g, lr, wd, B1, EPS, F("0.5"))),
    ("RmsPropCentered", 'kind = "rmsprop", alpha = 0.9, epsilon = 0.001, weight_decay = 0.1, centered = true',
     lambda p, g, lr, wd: rmsprop(p, g, lr, wd, B1, EPS, centered=True)),
    ("Lamb", f'kind = "lamb", {ADAM}', lambda p, g, lr, wd: lamb(p, g, lr, wd, B1, B2, EPS)),
    ("Lion", 'kind = "lion", beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1',
     lambda p, g, lr, wd: lion(p, g, lr, wd, B1, B2)),
    ("Adafactor", 'kind = "adafactor", beta2_decay = -0.8, epsilon = 0.001, epsilon2 = 0.5, clip_threshold = 0.75, '
     "weight_decay = 0.1",
     lambda p, g, lr, wd: adafactor(p, g, lr, wd, F("-0.8"), EPS, F("0.5"), F("0.75"))),
    # 8 lr is above 1 / sqrt(t) from the second step on, epsilon2 above the size of b and w, the threshold below u's.
    ("AdafactorLimits", 'kind = "adafactor", beta2_decay = -0.5, epsilon = 1.5, epsilon2 = 2.0, clip_threshold = 0.5, '
     "weight_decay = 0.1",
     lambda p, g, lr, wd: adafactor(p, g, 8 * lr, wd, F("-0.5"), F("1.5"), F(2), F("0.5"))),
]


def numbers(t):
    return "{" + ", ".join(mp.nstr(x, 20, min_fixed=-99, max_fixed=99) for row in t for x in row) + "}"


def main():
    print("// Parameters after three steps of each optimizer, by optimizer_answers.py.")
    print("#pragma once\n\n#include <vector>\n\nnamespace weft::testing {\n")
    print("struct OptimizerAnswer {")
    print("  const char* name;\n  const char* optimizer;  // nn.optimizer")
    print("  std::vector<double> w;\n  std::vector<double> b;\n};\n")
    print("inline const OptimizerAnswer kOptimizerAnswers[] = {")
    for name, text, steps in CASES:
        w = steps(W, GRADIENTS_W, LR, WD)
        for more, groups, lr, wd in (("", "", LR, WD), ("Groups", GROUPS, LR / 2, mpf(0))):
            rate = "1.0" if name == "AdafactorLimits" else "0.125"
            print(f'    {{"{name}{more}",\n     R"({{lr = {rate}, {text}{groups}}})",')
            print(f"     {numbers(w)},\n     {numbers(steps(B, GRADIENTS_B, lr, wd))}}},")
    print("};\n\n}  // namespace weft::testing")


if __name__ == "__main__":
    main()
