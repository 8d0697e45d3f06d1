"""Types of results in Triton, as data: `python tests/triton/generate_types.py FILE`, with Triton.

A row is an operation and the dtype of its result, or "error".  Triton compiles without a GPU.
"""

import contextlib
import io
import itertools
import linecache
import sys

DTYPES = ("int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "bfloat16", "float32", "float64", "float8e4nv", "float8e5")
LITERALS = ("True", "2", "-1", "200", "70000", "3000000000", "2.5", "1e300")
OPERATORS = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "==", "<")
FUNCTIONS = {
    2: ("maximum", "minimum", "where"),
    1: ("abs", "sum", "max", "min", "cumsum", "cumprod", "softmax", "xor_sum")}
UNARY = {"negative": "-", "invert": "~"}


def operands():
    """Pairs of operands: (kind, dtype or number) of each."""
    tiles = [("tile", dtype) for dtype in DTYPES]
    scalars = [("scalar", dtype) for dtype in DTYPES]
    numbers = [(kind, number) for kind in ("literal", "named", "constexpr") for number in LITERALS]
    arguments = [("argument", "int"), ("argument", "float")]
    yield from itertools.product(tiles, [*tiles, *scalars, *numbers, *arguments])
    yield from itertools.product([*scalars, *numbers, *arguments], tiles)
    yield from itertools.product(scalars, scalars)


def expressions():
    """(name of the operation, its operands) of each row."""
    pairs = list(operands())
    for name in (*OPERATORS, *FUNCTIONS[2]):
        for pair in pairs:
            yield name, pair
    for dtype in DTYPES:
        for name in (*UNARY, *FUNCTIONS[1]):
            yield name, (("tile", dtype),)
        for to in DTYPES:
            yield f"to {to}", (("tile", dtype),)


def source(name, given):
    """The text of a kernel that computes an operation; the result is `result`."""
    lines, names = ["@triton.jit", "def kernel(P0, P1, A0, A1, C0: tl.constexpr, "
                    "C1: tl.constexpr):"], []
    for number, (kind, value) in enumerate(given):
        text = {"tile": f"tl.load(P{number} + tl.arange(0, 4))", "scalar": f"tl.load(P{number})",
                "named": value, "argument": f"A{number}", "literal": value,
                "constexpr": f"C{number}"}[kind]
        names.append(f"x{number}" if kind in ("tile", "scalar", "named") else f"({text})")
        if kind in ("tile", "scalar", "named"):
            lines.append(f"    x{number} = {text}")
    if name.startswith("to "):
        result = f"{names[0]}.to(tl.{name[3:]})"
    elif name in OPERATORS:
        result = f"{names[0]} {name} {names[1]}"
    elif name in UNARY:
        result = f"{UNARY[name]}{names[0]}"
    elif name == "where":
        result = f"tl.where(tl.arange(0, 4) < 2, {names[0]}, {names[1]})"
    else:
        result = f"tl.{name}({', '.join(names)})"
    return "\n".join([*lines, f"    result = {result}"])


def made(text, number, names):
    """The function that a text defines, with a source that can be read again."""
    file = f"<row {number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), names)
    return names["kernel"]


CODES = dict(zip((*DTYPES, "error"), "b1248cdefhgwxjk-"))  # of dtypes, a letter each


def grouped(results):
    """Lines of (operation, first operand, a letter for each second one), of results in order."""
    for key, rows in itertools.groupby(zip(expressions(), results),
                                       key=lambda row: (row[0][0], row[0][1][0])):
        yield key, [(given, result) for (_, given), result in rows]


def main(path):
    import triton
    import triton.language as tl
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend

    short = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
             "float8e4nv": "fp8e4nv", "float8e5": "fp8e5"}
    short |= {d: d.replace("uint", "u").replace("int", "i") for d in DTYPES if "int" in d}
    long = {value: key for key, value in short.items()} | {d: d for d in DTYPES}
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    rows = []
    for number, (name, given) in enumerate(expressions()):
        signature = {f"P{i}": "*i32" for i in range(2)}
        signature |= {f"A{i}": "i32" for i in range(2)}
        signature |= {f"C{i}": "constexpr" for i in range(2)}
        constants = {(4,): 1, (5,): 1}
        for i, (kind, value) in enumerate(given):
            if kind in ("tile", "scalar"):
                signature[f"P{i}"] = "*" + short[value]
            elif kind == "argument":
                signature[f"A{i}"] = {"int": "i32", "float": "fp32"}[value]
            elif kind == "constexpr":
                constants[(4 + i,)] = eval(value)
        text = source(name, given) + "\n    tl.static_print('TYPE', result.dtype)"
        kernel = made(text, number, {"triton": triton, "tl": tl})
        printed = io.StringIO()
        options = backend.parse_options({})
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        ast = ASTSource(kernel, signature, constants)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
                ast.make_ir(target, options, backend.get_codegen_implementation(options),
                            backend.get_module_map(), context)
            found = long[printed.getvalue().split("TYPE")[1].strip()]
        except Exception:
            found = "error"
        rows.append(CODES[found])
        if number % 500 == 0:
            print(number, name, given, found, file=sys.stderr)
    with open(path, "w") as file:
        for (name, first), rows in grouped(rows):
            file.write(f"{name};{' '.join(first)};{''.join(result for _, result in rows)}\n")


def read(path):
    """(name, operands, dtype of the result or "error") of each row."""
    names = {letter: dtype for dtype, letter in CODES.items()}
    with open(path) as file:
        letters = "".join(line.rstrip("\n").rpartition(";")[2] for line in file)
    for (name, given), letter in zip(expressions(), letters, strict=True):
        yield name, given, names[letter]


if __name__ == "__main__":
    main(sys.argv[1])
