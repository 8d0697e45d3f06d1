"""Ops give the right types, and say what they accept when they are given something else."""

import pytest

from blocknumba.errors import BlockTypeError
from blocknumba.tile_ir import ops  # noqa: F401  fills the registry
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import (
    DTYPES, PointerType, TileType, bool_, float16, float32, int32, int64, uint32,
)


def tile(dtype, *shape):
    return TileType(dtype, shape)


F, I, B = tile(float32, 8), tile(int32, 8), tile(bool_, 8)
P = tile(PointerType(float32), 8)

REFUSED = [
    ("add", (F, I), {}, "add: given tile<8xfloat32> and tile<8xint32>, "
                        "accepted operands of one type"),
    ("add", (F, tile(float32, 4)), {}, "add: given tile<8xfloat32> and tile<4xfloat32>, "
                                       "accepted operands of one type"),
    ("div", (I, I), {}, "div: given int32, accepted bfloat16, float16, float32, float64"),
    ("and", (F, F), {}, "and: given float32, accepted bool, int16, int32, int64, int8, uint16, "
                        "uint32, uint64, uint8"),
    ("select", (I, F, F), {}, "where: condition must be bool, got tile<8xint32>"),
    ("select", (B, F, I), {}, "where: given tile<8xfloat32> and tile<8xint32>, "
                              "accepted operands of one type"),
    ("select", (tile(bool_), F, F), {}, "where: given condition bool and tile<8xfloat32>, "
                                        "accepted one shape"),
    ("cast", (P,), {"dtype": "int64"}, "cast: given tile<8xptr<float32>>, "
                                       "accepted numbers and bools"),
    ("cast", (F,), {"dtype": "float64", "rounding": "zero"},
     "cast: rounding 'zero' needs a narrower float of 16 bits or more, got float32 to float64"),
    ("cast", (F,), {"dtype": "float16", "rounding": "up"},
     "cast: rounding must be one of ('nearest', 'zero', 'saturate'), got 'up'"),
    ("bitcast", (F,), {"dtype": "int64"}, "bitcast: given tile<8xfloat32> and int64, "
                                          "accepted dtypes of one size"),
    ("arange", (), {"start": 0, "size": 100}, "arange: size must be a power of two, got 100"),
    ("arange", (), {"start": 2**31 - 1, "size": 2}, "arange: given 2147483647 to 2147483649, "
                                                    "accepted int32"),
    ("program_id", (), {"axis": 3}, "program_id: axis must be 0, 1 or 2, got 3"),
    ("splat", (F,), {"shape": (8,)}, "splat: given tile<8xfloat32>, accepted a scalar"),
    ("splat", (tile(float32),), {"shape": (6,)},
     "splat: every extent must be a power of two, got (6,)"),
    ("splat", (tile(float32),), {"shape": (1,) * 17},
     "splat: given rank 17, accepted at most 16"),
    ("splat", (tile(float32),), {"shape": (0,)},
     "splat: every extent must be a power of two, got (0,)"),
    ("broadcast", (F,), {"shape": (4,)}, "broadcast: given shape (8,), "
                                         "accepted one that broadcasts to (4,)"),
    ("broadcast", (F,), {"shape": (1, 8)}, "broadcast: given shape (8,), "
                                           "accepted one that broadcasts to (1, 8)"),
    ("reshape", (F,), {"shape": (4,)}, "reshape: given (8,) with 8 elements, accepted 4 elements"),
    ("transpose", (F,), {"axes": (1,)}, "transpose: axes must be a permutation of (0,), got (1,)"),
    ("join", (F, I), {}, "join: given tile<8xfloat32> and tile<8xint32>, "
                         "accepted two tiles of one type"),
    ("split", (F,), {}, "split: given tile<8xfloat32>, "
                        "accepted rank 2 or more and a last axis of extent 2"),
    ("flip", (F,), {"axis": 1}, "flip: axis must be in [0, 1), got 1"),
    ("extract", (F,), {"starts": (2,), "shape": (4,)},
     "extract: given start (2,) and shape (4,), accepted an aligned part of (8,)"),
    ("reduce", (F,), {"axis": 1, "kind": "sum"}, "sum: axis must be in [0, 1), got 1"),
    ("reduce", (F,), {"axis": 0, "kind": "xor"},
     "xor: given float32, accepted bool, int16, int32, int64, int8, uint16, uint32, uint64, uint8"),
    ("arg_reduce", (P,), {"axis": 0, "kind": "max"},
     "argmax: given ptr<float32>, accepted numbers and bools"),
    ("arg_reduce", (F,), {"axis": 0, "kind": "sum"},
     "arg_reduce: kind must be 'max' or 'min', got 'sum'"),
    ("offset", (F, I), {}, "offset: given tile<8xfloat32>, accepted pointers"),
    ("offset", (P, tile(int32, 4)), {}, "offset: count must be an integer of 32 or 64 bits and of "
                                        "shape (8,), got tile<4xint32>"),
    ("load", (F,), {}, "load: given tile<8xfloat32>, accepted a pointer or a tile of pointers"),
    ("load", (P, tile(bool_, 4)), {}, "load: mask must be a bool tile of shape (8,), "
                                      "got tile<4xbool>"),
    ("load", (P, B, I), {}, "load: other must be tile<8xfloat32>, got tile<8xint32>"),
    ("load", (P,), {"cache": ".wb"},
     "load: cache_modifier must be one of ('', '.ca', '.cg', '.cs', '.cv'), "
     "got '.wb'"),
    ("store", (P, I), {}, "store: value must be tile<8xfloat32>, got tile<8xint32>"),
    ("atomic_rmw", (P, F), {"kind": "and"},
     "atomic_and: given float32, accepted int32, int64, uint32, uint64"),
    ("atomic_rmw", (P, F), {"kind": "add", "scope": "world"},
     "atomic_add: scope must be one of ('cta', 'gpu', 'sys'), got 'world'"),
    ("atomic_cas", (tile(PointerType(bool_), 8), B, B), {},
     "atomic_cas: given bool, accepted dtypes of 16, 32 or 64 bits"),
    ("if", (B,), {"result_types": ()}, "if: condition must be a scalar bool, got tile<8xbool>"),
    ("for", (tile(int32), tile(int64), tile(int32)), {},
     "range: bounds must be scalar ints of one dtype, got int32, int64, int32"),
    ("continue_if", (tile(int32),), {}, "loop: condition must be a scalar bool, got int32"),
    ("assert", (I,), {"message": ""}, "assert: condition must be bool, got tile<8xint32>"),
    ("assume", (B,), {}, "assume: condition must be a scalar bool, got tile<8xbool>"),
    ("check_index", (I, tile(int64, 8)), {"array": "x", "axis": 0},
     "check_index: given tile<8xint32> and tile<8xint64>, accepted one type"),
    ("check_index", (I, I, tile(bool_)), {"array": "x", "axis": 0},
     "check_index: mask must be a bool tile of shape (8,), got bool"),
    ("hint", (F,), {"divisibility": (4, 4)},
     "hint: one number per axis of tile<8xfloat32>, got (4, 4)"),
]


@pytest.mark.parametrize(("name", "types", "attributes", "message"), REFUSED,
                         ids=[f"{name}-{i}" for i, (name, *_) in enumerate(REFUSED)])
def test_operands_that_do_not_fit_are_refused_with_what_is_accepted(name, types, attributes,
                                                                    message):
    with pytest.raises(BlockTypeError) as caught:
        OPS[name].infer(*types, **attributes)
    assert caught.value.message == message


ACCEPTED = [
    ("add", (F, F), {}, F),
    ("lt", (F, F), {}, B),
    ("isnan", (F,), {}, B),
    ("select", (B, P, P), {}, P),
    ("cast", (F,), {"dtype": "bfloat16"}, tile(DTYPES["bfloat16"], 8)),
    ("cast", (tile(float32),), {"dtype": "float16", "rounding": "zero"}, tile(float16)),
    ("bitcast", (F,), {"dtype": "uint32"}, tile(uint32, 8)),
    ("constant", (), {"value": 1, "dtype": "int64"}, tile(int64)),
    ("undefined", (), {"dtype": "ptr<float32>", "shape": (8,)}, P),
    ("arange", (), {"start": -3, "size": 8}, I),
    ("splat", (tile(PointerType(float32)),), {"shape": (8,)}, P),
    ("reshape", (F,), {"shape": (2, 4)}, tile(float32, 2, 4)),
    ("reshape", (tile(float32, 1),), {"shape": ()}, tile(float32)),
    ("transpose", (tile(float32, 2, 4, 8),), {"axes": (2, 0, 1)}, tile(float32, 8, 2, 4)),
    ("join", (F, F), {}, tile(float32, 8, 2)),
    ("split", (tile(float32, 8, 2),), {}, (F, F)),
    ("reduce", (tile(float16, 4, 8),), {"axis": 0, "kind": "sum"}, tile(float16, 8)),
    ("reduce", (B,), {"axis": 0, "kind": "or"}, tile(bool_)),
    ("arg_reduce", (tile(float16, 4, 8),), {"axis": 1, "kind": "min"}, tile(int32, 4)),
    ("offset", (P, tile(int64, 8)), {}, P),
    ("load", (P, B, F), {}, F),
    ("store", (P, F, B), {}, None),
    ("atomic_rmw", (P, F), {"kind": "add"}, F),
    ("for", (tile(int32), tile(int32), tile(int32), F, P), {}, (F, P)),
    ("loop", (F,), {}, (F,)),
]


@pytest.mark.parametrize(("name", "types", "attributes", "result"), ACCEPTED,
                         ids=[f"{name}-{i}" for i, (name, *_) in enumerate(ACCEPTED)])
def test_results_have_the_types_that_the_rules_say(name, types, attributes, result):
    assert OPS[name].infer(*types, **attributes) == result
