"""All functions of a program as one sequence of steps."""

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

# Their guard becomes a branch around them: a warp that executes them may have to wait, or leaves.
_ALONE = frozenset(("ret", "exit", "call", "bar", "barrier", "wgmma"))
_ALONE_FORMS = frozenset((("mbarrier", "try_wait"), ("mbarrier", "test_wait")))


@dataclass(frozen=True, slots=True)
class Code:
    """What a launch executes.

    steps, instructions: one for each place.   entries: where each function begins.
    unknown: what the emulator cannot execute, by place; reaching it is an error.
    """

    steps: list[Step]
    instructions: list[Instruction]
    entries: dict[str, int]
    unknown: dict[int, UnknownInstructionError]


def link(program: Program) -> Code:
    """Decode every instruction of a program."""
    pieces, entries, end = [], {}, 0
    for function in program.functions.values():
        piece = _place(function, end)
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

    places: the place of each instruction of its body, and of its end.
    """

    start: int
    instructions: list[Instruction]
    places: list[int]


def _place(function: Function, start: int) -> _Piece:
    instructions: list[Instruction] = []
    places = []
    for instruction in function.body:
        places.append(start + len(instructions))
        if instruction.guard is not None and _is_alone(instruction):
            instructions.append(replace(instruction, opcode=_SKIP, operands=(),
                                        inverted=not instruction.inverted))
            instruction = replace(instruction, guard=None)
        instructions.append(instruction)
    places.append(start + len(instructions))
    opcode = ("exit",) if function.is_kernel else _LEAVE
    instructions.append(Instruction(opcode, (), None, False, 0))
    return _Piece(start, instructions, places)


def _is_alone(instruction: Instruction) -> bool:
    return instruction.opcode[0] in _ALONE or instruction.opcode[:2] in _ALONE_FORMS


def _decode_function(program: Program, function: Function, piece: _Piece, code: Code) -> None:
    meetings = reconvergence_points([_successors(function, piece, index)
                                     for index in range(len(piece.instructions))])
    for index, instruction in enumerate(piece.instructions):
        meeting = meetings[index]
        pc = piece.start + index
        site = Site(instruction, program, function, pc,
                    EXIT if meeting == EXIT else piece.start + meeting, piece.places,
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
    """Where an instruction can go on, as indices into the piece."""
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
    targets = [piece.places[label.index] - piece.start for label in _labels(instruction)]
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
    name = site.words[0]
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
        active = cohort.spread(guard(cohort))
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
