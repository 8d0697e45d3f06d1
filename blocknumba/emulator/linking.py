"""Linking: all functions of a program as one list of steps, indexed by program counter.

A guarded instruction that may block or end its lanes becomes a branch around an unguarded one:

    @%p bar.sync 0;      ->      skip (unless %p, jump over the next instruction)
                                 bar.sync 0;
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from blocknumba.emulator.cohort import Cohort
from blocknumba.emulator.control_flow import EXIT, reconvergence_points
from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.errors import UnknownInstructionError
from blocknumba.emulator.instructions import TABLE
from blocknumba.emulator.instructions.control import branch, conditional, leave
from blocknumba.emulator.special import SPECIALS
from blocknumba.emulator.syntax import Function, Instruction, Label, Program, Symbol

_SKIP = ("skip",)  # a jump over the next instruction, where its guard does not hold
_LEAVE = ("leave",)  # the end of a device function

# Their guard becomes a branch around them: a warp that executes them may block or end.
_BRANCHED = frozenset(("ret", "exit", "call", "bar", "barrier", "wgmma"))
_BRANCHED_VARIANTS = frozenset((("mbarrier", "try_wait"), ("mbarrier", "test_wait")))


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a module.

    steps, instructions: one for each program counter.   entries: where each function begins.
    unknown: errors of the instructions that the emulator does not know, by program counter;
        executing one raises its error.
    """

    steps: list[Step]
    instructions: list[Instruction]
    entries: dict[str, int]
    unknown: dict[int, UnknownInstructionError]


def link(program: Program) -> Code:
    """Decode every instruction of a program."""
    pieces, entries, end = [], {}, 0
    for function in program.functions.values():
        piece = _lay_out(function, end)
        entries[function.name] = end
        end += len(piece.instructions)
        pieces.append((function, piece))
    code = Code([], [], entries, {})
    for function, piece in pieces:
        _decode_function(program, function, piece, code)
    return code


@dataclass(frozen=True, slots=True)
class _Piece:
    """One function's instructions, skips included.

    pcs: program counter of each instruction of its body, and of its end.
    """

    start: int
    instructions: list[Instruction]
    pcs: list[int]


def _lay_out(function: Function, start: int) -> _Piece:
    instructions: list[Instruction] = []
    pcs = []
    for instruction in function.body:
        pcs.append(start + len(instructions))
        if instruction.guard is not None and _is_branched(instruction):
            instructions.append(replace(instruction, opcode=_SKIP, operands=(),
                                        inverted=not instruction.inverted))
            instruction = replace(instruction, guard=None)
        instructions.append(instruction)
    pcs.append(start + len(instructions))
    opcode = ("exit",) if function.is_kernel else _LEAVE
    instructions.append(Instruction(opcode, (), None, False, 0))
    return _Piece(start, instructions, pcs)


def _is_branched(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    return opcode[0] in _BRANCHED or opcode[:2] in _BRANCHED_VARIANTS


def _decode_function(program: Program, function: Function, piece: _Piece, code: Code) -> None:
    points = reconvergence_points([_successors(function, piece, index)
                                   for index in range(len(piece.instructions))])
    for index, instruction in enumerate(piece.instructions):
        reconvergence = points[index]
        pc = piece.start + index
        site = Site(instruction, program, function, pc,
                    EXIT if reconvergence == EXIT else piece.start + reconvergence, piece.pcs,
                    code.entries, SPECIALS)
        try:
            step = _decode(site)
        except UnknownInstructionError as error:
            step, code.unknown[pc] = _raise(error), error
        except Exception:  # decoders trust instructions to have their operands and types
            error = UnknownInstructionError(
                f"{'.'.join(instruction.opcode)}: given {len(instruction.operands)} operands, "
                "which are too few, too many or of other kinds than it takes")
            step, code.unknown[pc] = _raise(error), error
        code.steps.append(step)
        code.instructions.append(instruction)


def _successors(function: Function, piece: _Piece, index: int) -> list[int]:
    """Successors of an instruction, as indices into the piece."""
    instruction = piece.instructions[index]
    last = len(piece.instructions) - 1
    name = instruction.opcode[0]
    if name == "exit" or index == last or (name == "ret" and function.is_kernel):
        return [EXIT]
    if name == "ret":
        return [last]
    if name == "skip":
        return [index + 2, index + 1]
    if name not in ("bra", "brx"):
        return [index + 1]
    targets = [piece.pcs[label.index] - piece.start for label in _labels(instruction)]
    return targets if instruction.guard is None and targets else [*targets, index + 1]


def _labels(instruction: Instruction) -> list[Label]:
    found = [operand.target for operand in instruction.operands if isinstance(operand, Symbol)]
    labels = [label for label in found if isinstance(label, Label) and label.index >= 0]
    return [target for label in labels for target in label.targets or (label,)]


def _raise(error: UnknownInstructionError) -> Step:
    def step(_: Cohort) -> None:
        raise UnknownInstructionError(error.message)
    return step


def _decode(site: Site) -> Step:
    name = site.opcode[0]
    if name == "skip":
        return conditional(site, site.pc + 2, site.instruction.inverted)
    if name == "leave":
        return leave(site)
    if name == "bra" and site.instruction.guard is not None:
        return branch(site)
    decoder: Decoder | None = TABLE.get(name)
    if decoder is None:
        raise site.refuse("not an instruction that the emulator knows")
    step = decoder(site)
    if site.instruction.guard is None:
        return step
    return _guarded(step, site.read(site.instruction.guard, "pred"), site.instruction.inverted)


def _guarded(step: Step, guard: Callable[[Cohort], np.ndarray], inverted: bool) -> Step:
    """A step that only the lanes whose guard holds execute."""
    def run(cohort: Cohort) -> bool | None:
        active = cohort.by_lane(guard(cohort))
        if inverted:
            active = ~active
        if cohort.mask is not None:
            active = active & cohort.mask
        count = int(np.count_nonzero(active))
        if count == 0:
            return None
        if count == cohort.lanes:
            return step(cohort)
        saved, cohort.mask = cohort.mask, active
        result = step(cohort)
        cohort.mask = saved
        return result
    return run
