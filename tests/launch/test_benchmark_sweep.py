"""The sweep suite's tables at sizes of a second, the accelerators' as well; nothing is timed."""

import time
from types import SimpleNamespace

import jax
import pytest

from compgen_jax.config import changed
from launch import benchmark
from launch.suites import contenders, programs, sweep, timing


@pytest.fixture
def config(tiny):
    return changed(
        tiny,
        {"task.support.region": "none", "training.steps": 4, "training.batch_size": 4},
    )


@pytest.fixture(autouse=True)
def compiled_in_haste():
    """Here compilation takes all the time."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def peer(config, steps):
    """In the place of PyTorch."""
    assert config.task.grid in (8, 12) and steps >= 2
    return lambda: time.sleep(1e-4)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(contenders, "cores", lambda: 2)


def processes(configs, steps, count):
    """In the place of PyTorch's."""
    assert count == 2 and configs
    return lambda: time.sleep(1e-4)


def test_the_accelerators_programs_run_and_their_rows_are_complete(config):
    """Every lowering of a padded bucket, and bfloat16, on this device."""
    works = programs.on_accelerator(
        config, counts=(1, 2), both_precisions_at=2, buckets=((8, 12),), steps=4, gemm_side=32
    )
    rows = sweep.run(1, works, peer, processes)
    assert len({tuple(row) for row in rows}) == 1  # one heading for all
    lowerings = [row["contender"].removeprefix("vmapped, ") for row in rows[3:]]
    assert lowerings == ["lax", "gemm", "winograd", "lax", "gemm"]
    assert [row["products in"] for row in rows] == ["float32"] * 6 + ["bfloat16"] * 2
    for row in rows:
        assert row["trials"] == 2 and not row["note"] and row["ms per step and trial"] > 0
        assert row["over best PyTorch"] > 0 and row["over single runs"] > 0
        assert row["trials x steps per s"] * row["ms per step and trial"] == pytest.approx(1e3)
        padded = "vmapped" in row["contender"]
        assert row["waste"] == pytest.approx((1 - (64 + 144) / 288) if padded else 0)
        ours = not row["contender"].startswith("PyTorch")
        assert (row["compile s"] is not None) == (row["MB per step and trial"] is not None) == ours
    assert len(timing.table(rows).splitlines()) == len(rows) + 1


def test_trials_train_over_devices_as_sweeps_train_them(config):
    work = programs.on_cpu(config, count=3)[0]
    work = work._replace(grids=(8,), programs=work.programs[:1], steps=6, gemm_side=32)
    rows = sweep.run(1, [work], peer, processes)
    in_turn = f"in turn on {jax.local_device_count()} devices"
    assert [row["contender"] for row in rows] == [
        sweep.PEER, sweep.SINGLE, sweep.PROCESSES.format(2), in_turn
    ]  # fmt: skip
    assert all(row["trials"] == 3 and row["ms per step and trial"] for row in rows)


def test_what_does_not_fit_is_said_in_its_row(config, monkeypatch):
    def too_much(*_):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nand much more")

    monkeypatch.setattr(sweep, "_compiled", too_much)
    work = programs.Work(config, (8,), (programs.Program("vmapped", 2, "gemm"),), 1, 4, 32)
    rows = sweep.run(1, [work], peer, processes)
    assert [row["note"] for row in rows] == [
        "", "RESOURCE_EXHAUSTED: Out of memory", "", "RESOURCE_EXHAUSTED: Out of memory"
    ]  # fmt: skip
    assert min(rows[0]["over best PyTorch"], rows[2]["over best PyTorch"]) == 1
    assert rows[1]["ms per step and trial"] is None
    assert "-" in timing.table(rows).splitlines()[-1].split()


@pytest.mark.parametrize(("limit", "note"), [(3, "does not fit: needs 4 of 3 GiB"), (4, "")])
def test_a_program_beyond_the_devices_memory_is_not_run(monkeypatch, limit, note):
    sizes = {"temp": 2 * 2**30, "argument": 2**30, "output": 2**30}
    memory = SimpleNamespace(**{f"{name}_size_in_bytes": size for name, size in sizes.items()})
    device = SimpleNamespace(memory_stats=lambda: {"bytes_limit": limit * 2**30})
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    assert sweep._too_large(SimpleNamespace(memory_analysis=lambda: memory)) == note


def test_the_suites_programs_are_those_of_the_presets():
    assert "sweep" in benchmark.SUITES
    at_one_grid, in_a_bucket = programs.on_accelerator()
    assert {program.trials for program in at_one_grid.programs} == {1, 4, 16, 64, 256}
    assert {program.trials for program in in_a_bucket.programs} == {6, 18, 66, 258}
    for work in (at_one_grid, in_a_bucket):
        assert {program.lowering for program in work.programs} == {"lax", "gemm", "winograd"}
        assert (work.config.model.width, work.config.model.depth) == (64, 4)
        rounded = [p for p in work.programs if p.precision == "bfloat16"]
        assert rounded and all(p.lowering != "winograd" for p in rounded)
    for work in programs.on_cpu():
        assert contenders.step_flops(work.config) > 0


def test_pytorchs_decoder_has_as_many_parameters(config):
    torch = pytest.importorskip("torch")
    from compgen_jax.training import loop

    model = contenders._torch_decoder(config, sum(config.task.make().parts))
    ours = jax.eval_shape(loop.make_trainer(config).init, jax.random.key(0)).params
    count = sum(leaf.size for leaf in jax.tree.leaves(ours))
    assert sum(torch.numel(parameter) for parameter in model.parameters()) == count
    contenders.torch_steps(config, 2)()
    contenders.torch_processes([config] * 3, 2, 2)()
