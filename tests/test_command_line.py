"""`python -m blocknumba`: its commands, and what they say of mistakes."""

import pytest

from blocknumba.__main__ import COMMANDS, main

SOURCE = """kernel f(
  %i: int32 = value(i)
) {
  %zero = constant {value=0} : int32
  %0 = add %i, %zero : int32
  print %0 {prefix=""}
  return
}
"""
SIMPLER = """kernel f(
  %i: int32 = value(i)
) {
  print %i {prefix=""}
  return
}
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "f.tile"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command.name, "--help"])

    assert end.value.code == 0
    assert command.summary in capsys.readouterr().out


def test_opt_prints_what_all_passes_make_of_a_function(source, capsys):
    status = main(["opt", str(source)])

    assert (status, capsys.readouterr().out) == (0, SIMPLER)


def test_opt_runs_the_passes_that_are_named(source, capsys):
    main(["opt", str(source), "--passes", "cse"])

    assert capsys.readouterr().out == SOURCE


def test_opt_shows_the_function_after_each_pass_and_its_time(source, capsys):
    main(["opt", str(source), "--passes", "canonicalize,dce", "--dump", "--time"])

    printed = capsys.readouterr()
    assert printed.out.count("# after ") == 2
    assert printed.out.endswith(f"# after dce\n{SIMPLER}\n")
    assert [line.split()[0] for line in printed.err.splitlines()] == ["canonicalize", "dce"]


def test_opt_goes_on_to_layouts(source, capsys):
    source.write_text("kernel f(\n) {\n  %0 = arange {start=0, size=64} : tile<64xint32>\n"
                      "  print %0 {prefix=\"\"}\n  return\n}\n")

    status = main(["opt", str(source), "--passes", "tile,layout", "--num-warps", "1"])

    assert status == 0
    assert "tile<64xint32, register:" in capsys.readouterr().out


def test_a_mistake_is_one_message_without_a_traceback(source, capsys):
    source.write_text(SOURCE.replace("%i, %zero", "%i, %one"))

    status = main(["opt", str(source)])

    printed = capsys.readouterr().err
    assert status == 1
    assert printed.startswith("ParseError: parse: given '%0 = add %i, %one : int32': %one is not")
    assert "f.tile, line 5\n    %0 = add %i, %one : int32\n" in printed


@pytest.mark.parametrize(("arguments", "message"), [
    (("--passes", "inline"), "opt: given pass 'inline', accepted tile, layout, canonicalize"),
    ((), "opt: cannot read missing.tile: No such file"),
])
def test_opt_names_what_it_accepts(arguments, message, source, capsys):
    file = str(source) if arguments else "missing.tile"

    status = main(["opt", file, *arguments])

    assert status == 1
    assert message in capsys.readouterr().err


EMULATED = """import blocknumba as bn

@bn.jit
def total(x, out, BLOCK: bn.constexpr):
    bn.device_print("program", bn.program_id(0))
    out[bn.program_id(0)] = bn.sum(x[bn.block(0, BLOCK)])
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100", "sm_120"])
def test_emulate_runs_a_kernel_compiled_for_each_generation(target, tmp_path, capsys):
    (tmp_path / "total.py").write_text(EMULATED)

    status = main(["emulate", f"{tmp_path / 'total.py'}:total", "f16[256]", "f16[2]", "--grid", "2",
                   "--constant", "BLOCK=128", "--target", target])

    printed = capsys.readouterr().out
    assert status == 0
    assert "pid (1, 0, 0) idx () program: 1\n" in printed
    assert "bank conflicts" in printed
