"""Warps for products of tiles: of a kernel, or of candidates of tiles, all at once.

Measured: perf/NOTES.md, "Warps and slots of kinds with dots", "Products: warps".
"""

from __future__ import annotations

import functools

import numpy as np

from blocknumba.gpu_layout.async_copies.ops import WARPGROUP
from blocknumba.gpu_layout.async_copies.residency import MAX_REGISTERS, chained_dot_registers
from blocknumba.tile_ir.analysis.products import Numbers, Product, Products

MAX_WARPS = 16
# One for so many words of the sums, few of them, until there are some warps.
SMALL_WORDS_PER_WARP, SMALL_MAX_WARPS = 256, 4
# 64 words of sums a thread, which leaves as many registers for operands; 128 where there would be
# too many warps, and with mma.sync: a warp with 64 x 64 of them reads operands the least.
WORDS_PER_WARP, MEDIUM_MAX_WARPS = 2048, 8
WARPGROUP_WORDS = 16384  # of one warpgroup: 128 words a thread
ROWS_PER_WARP = 16  # of an instruction; wgmma takes 64 rows from 4 warps
# Of operands that threads compute: more to do with them than tensor cores have with the sums.
# Weights of 4 bits, 8192 words: 177, 205, 295 us with 4, 8, 16 warps.
COMPUTED_WORDS_PER_WARP = 2048


def warps_of_products(products: Products, features: frozenset[str]) -> Numbers:
    """Warps for the dots of a program, a power of two.

    features: as of LayoutOptions.
    """
    each = (_warps_of_one(one, features) for one in products.dots)
    warps = functools.reduce(np.maximum, each)
    computed = 2 ** np.floor(np.log2(np.maximum(products.computed / COMPUTED_WORDS_PER_WARP, 1)))
    one_group = _fit_one_warpgroup(products, features) | _are_few_sums(products, features)
    return np.where(computed > WARPGROUP,
                    np.maximum(warps, np.minimum(computed, MEDIUM_MAX_WARPS)),
                    np.where(one_group, np.minimum(warps, WARPGROUP), warps))


def _warps_of_one(one: Product, features: frozenset[str]) -> Numbers:
    """Warps for a dot; beyond SMALL_MAX_WARPS at most one for every ROWS_PER_WARP rows."""
    fewest = np.clip(one.words // SMALL_WORDS_PER_WARP, 1, SMALL_MAX_WARPS)
    by_mma = "wgmma" not in features and not one.is_ieee_float32
    medium = np.minimum(one.words // (WORDS_PER_WARP * (2 if by_mma else 1)), MEDIUM_MAX_WARPS)
    large = np.maximum(medium, one.words // (2 * WORDS_PER_WARP))
    limit = np.clip(one.batches * one.rows // ROWS_PER_WARP, SMALL_MAX_WARPS, MAX_WARPS)
    return np.minimum(np.maximum(fewest, large), limit)


def _fit_one_warpgroup(products: Products, features: frozenset[str]) -> Numbers:
    """Whether every loop chains two dots, as attention does, and one warpgroup has the registers.

    Two programs of one warpgroup overlap better than two warpgroups of one program.
    """
    dots = products.dots
    fits = [chained_dot_registers(_sums(dots[first]), _sums(dots[second]), WARPGROUP)
            <= MAX_REGISTERS for first, second in products.chains]
    return np.logical_and.reduce(fits) & ("wgmma" in features and bool(fits))


def _are_few_sums(products: Products, features: frozenset[str]) -> Numbers:
    """Whether one warpgroup holds the sums of all dots in half of its registers, and programs are
    as many as tiles: as fast as two warpgroups where TMA fetches, faster where threads copy.

    A program that makes tile after tile is one of few, often one on a multiprocessor.
    """
    are_wgmma = "wgmma" in features and not any(
        one.is_ieee_float32 or one.sum_words > 1 for one in products.dots)
    few = sum(one.words for one in products.dots) <= WARPGROUP_WORDS
    return few & (are_wgmma and not products.walks)


def _sums(one: Product) -> Numbers:
    return one.batches * one.rows * one.columns
