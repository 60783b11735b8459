"""Break one formula at a time in a copy of the project: every break must fail a test.

`python -m tests.mutants` runs all of them; `python -m tests.mutants ridge floor` those whose name
holds one of the words. A mutant that no test notices is a formula that no test proves.
"""

import contextlib
import importlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SLOWEST = "test_heads.py"  # it goes over all heads, and comes last
# file by file: pytest sorts the files of a folder that is named beside them
TESTS = sorted(
    (str(path.relative_to(ROOT)) for path in (ROOT / "tests/attention").glob("test_*.py")),
    key=lambda name: (name.endswith(SLOWEST), name),
)
FORK = multiprocessing.get_context("fork")
# imported once: every run of the tests is a fork of this process
LIBRARIES = ("entmax", "hypothesis", "scipy.integrate", "scipy.stats", "sklearn.mixture", "torch")


@dataclass(frozen=True)
class Mutant:
    """`old` stands exactly once in the file, and `new` takes its place."""

    name: str
    file: str
    old: str
    new: str


MUTANTS = [
    Mutant("cell centres at the corner", "grid.py", "device=device) + 0.5) / height", "device=device)) / height"),
    Mutant("cell centres on linspace", "grid.py", "device=device) + 0.5) / width", "device=device) + 1) / (width + 1)"),
    Mutant("E-step: density not normalised", "densities/gaussian.py", "-0.5 * twice_determinant.log()", "0 * twice_determinant.log()"),
    Mutant("E-step: mixing coefficients ignored", "em.py", "theta.sigma, log_pi_BRK)", "theta.sigma, torch.zeros_like(theta.pi).masked_fill(is_zero, -torch.inf))"),
    Mutant("E-step: softmax over cells", "em.py", ".softmax(dim=2)", ".softmax(dim=3)"),
    Mutant("E-step: wrong sign of the correlation", "densities/gaussian.py", "ADJUGATE = (1.0, -1.0, -1.0, 1.0)", "ADJUGATE = (1.0, 1.0, 1.0, 1.0)"),
    Mutant("M-step: mixing coefficients, Eq. (9)", "em.py", "pi_BRK1.squeeze(-1),", "pi_BRK1.squeeze(-1).sqrt(),"),
    Mutant("M-step: means, Eq. (10)", "moments.py", "return mu, sigma + floor", "return mu.flip(-1), sigma + floor"),
    Mutant("M-step: covariance not centred, Eq. (11)", "moments.py", "mu[..., None, :], value=-1)", "mu[..., None, :], value=0)"),
    Mutant("M-step: correlation dropped, Eq. (11)", "moments.py", "return mu, sigma + floor", "return mu, torch.diag_embed(sigma.diagonal(dim1=-2, dim2=-1)) + floor"),
    Mutant("M-step: weights ignored", "em.py", "phi_B6L, weighted_B6L = grid.monomials, weighted_monomials(weights_BL, grid)", "phi_B6L, weighted_B6L = grid.monomials, weighted_monomials((weights_BL > 0) / grid.num_cells, grid)"),
    Mutant("moment match: weights ignored", "moments.py", "weighted_monomials(weights_BL, grid).sum(-1)", "weighted_monomials((weights_BL > 0) / grid.num_cells, grid).sum(-1)"),
    Mutant("a component without mass forgets its mean", "em.py", "pi_BRK1 <= SMALLEST_PI", "pi_BRK1 <= -1"),
    Mutant("floor left out", "moments.py", "return mu, sigma + floor", "return mu, sigma + 0 * floor"),
    Mutant("cell floor with the wrong variance", "moments.py", "1 / (12 * side**2)", "1 / (3 * side**2)"),
    Mutant("cell floor of the other axis", "moments.py", "for side in (height, width)", "for side in (width, height)"),
    Mutant("spherical covariance is the larger variance", "moments.py", ".mean(-1, keepdim=True)", ".amax(-1, keepdim=True)"),
    Mutant("initial covariance", "initial.py", "INITIAL_VARIANCE = 0.001", "INITIAL_VARIANCE = 0.002"),
    Mutant("initial mixing coefficients", "initial.py", "pi_RK.expand(", "pi_RK.cumsum(-1).expand("),
    Mutant("one EM iteration more", "em.py", "in range(iterations)", "in range(iterations + 1)"),
    Mutant("likelihood not weighted", "em.py", "weights_BL[..., None]).squeeze(-1)", "(weights_BL[..., None] > 0).double()).squeeze(-1)"),
    Mutant("ridge penalty", "basis.py", "+ basis.ridge * identity", "+ 10 * basis.ridge * identity"),
    Mutant("ridge operator not regularised", "basis.py", "+ basis.ridge * identity", "+ 1e-9 * identity"),
    Mutant("basis width left out of the expectation", "densities/mixture.py", "self.sigma + basis_cov", "self.sigma + 0 * basis_cov"),
    Mutant("basis lattice inside the image", "densities/lattice.py", "torch.linspace(0, 1, math", "torch.linspace(0.05, 0.95, math"),
    Mutant("basis not normalised", "basis.py", "/ (2 * math.pi * self", "/ (math.pi * self"),
    Mutant("description length: likelihood once", "selection.py", "-2 * log_likelihood", "-1 * log_likelihood"),
    Mutant("description length: rewarded components", "selection.py", "+ lam * complexity", "- lam * complexity"),
    Mutant("ties to the larger k", "selection.py", "return is_least.to(torch.uint8).argmax(1) + 1", "return is_least.shape[1] - is_least.flip(1).to(torch.uint8).argmax(1)"),
    Mutant("penalty of parameters", "selection.py", "6 * k - 1", "6 * k"),
    Mutant("worst restart kept", "selection.py", "return likelihood_BR[:, None]", "return -likelihood_BR[:, None]"),
    Mutant("selection by the whole batch", "selection.py", 'if selection == "sample" else', 'if selection == "batch" else'),
    Mutant("weights in padding count", "moments.py", "weights_BL.double() * grid.mask", "weights_BL.double()"),
    Mutant("caches made in inference mode", "cache.py", "torch.inference_mode(False), torch", "torch"),
    Mutant("rounding decides ties", "selection.py", "keepdim=True) + TIE", "keepdim=True)"),
    Mutant("training always uses k_max components", "seeding.py", "1 + mixed_seed(\"components\", seed, step) % k_max", "k_max"),
    Mutant("training draws ignore the step", "seeding.py", '"means", seed, step)', '"means", seed, 0)'),
    Mutant("restarts ignore k", "seeding.py", '"restarts", seed, k)', '"restarts", seed, k_max)'),
    Mutant("weighted starts always at the cell's centre", "initial.py", "across_BM], -1) - 0.5)", "across_BM], -1) * 0)"),
    Mutant("padding takes weight", "normalisers.py", "scores_BL.masked_fill(~grid.mask, -torch.inf)", "scores_BL.masked_fill(~grid.mask, 0.0)"),
    Mutant("gradient stopped at the weights", "normalisers.py", "return real_scores(scores_BL, grid).softmax(-1)", "return real_scores(scores_BL, grid).softmax(-1).detach()"),
    Mutant("normaliser: the option is ignored", "heads/head.py", "NORMALISERS[self.normaliser]", 'NORMALISERS["softmax"]'),
    Mutant("normaliser: scores not shifted", "normalisers.py", "(scores_BL - scores_BL.amax(-1, keepdim=True)).clamp(min=LOWEST)", "scores_BL.clamp(min=LOWEST)"),
    Mutant("normaliser: low scores cut off too early", "normalisers.py", "LOWEST = -2.0", "LOWEST = -0.5"),
    Mutant("normaliser: sums without the blocks before", "normalisers.py", "(within + before[..., None])", "(within + 0 * before[..., None])"),
    Mutant("normaliser: sums with their own block twice", "normalisers.py", "triangle(blocks.shape[-2], 1,", "triangle(blocks.shape[-2], 0,"),
    Mutant("sparsemax: threshold for a sum of 2", "normalisers.py", "(cumulated(sorted_BS) - 1)", "(cumulated(sorted_BS) - 2)"),
    Mutant("sparsemax: threshold of all cells", "normalisers.py", "* inverse_S).amax(-1, keepdim=True)", "* inverse_S)[..., -1:]"),
    Mutant("sparsemax: negative weights", "normalisers.py", "weights_BL = (shifted_BL - sparsemax_threshold(shifted_BL)).clamp(min=0)", "weights_BL = shifted_BL - sparsemax_threshold(shifted_BL)"),
    Mutant("sparsemax: gradient weighted", "normalisers.py", "ctx.saved_tensors[0].sign()", "ctx.saved_tensors[0]"),
    Mutant("entmax15: scores not halved", "normalisers.py", "below_highest(scores_BL / 2)", "below_highest(scores_BL)"),
    Mutant("entmax15: weights not squared", "normalisers.py", "return root_BL.square()", "return root_BL.clone()"),
    Mutant("entmax15: spread left out of the threshold", "normalisers.py", "(inverse_S - square_BS).addcmul(mean_BS, mean_BS)", "(inverse_S - 0 * square_BS)"),
    Mutant("entmax15: threshold of cells outside the support", "normalisers.py", "torch.minimum(threshold_BS, sorted_BS)", "threshold_BS"),
    Mutant("entmax15: root taken on the other side", "normalisers.py", "mean_BS - radicand_BS", "mean_BS + radicand_BS"),
    Mutant("sparse gradient: sum not zero", "normalisers.py", "(gradient_BL - mean_B1)", "gradient_BL"),
    Mutant("sparse gradient: plain mean", "normalisers.py", "(slope_BL * gradient_BL).sum(-1, keepdim=True) / slope_BL.sum(-1, keepdim=True)", "(slope_BL.sign() * gradient_BL).sum(-1, keepdim=True) / slope_BL.sign().sum(-1, keepdim=True)"),
    Mutant("cell mass by the centre's density", "densities/cell_mass.py", "density_v * inside", "density_v * (high - low)[..., 0, None, None]"),
    Mutant("cell mass without correlation", "densities/cell_mass.py", "sigma[..., 0, 1] / sigma[..., 1, 1]  # of", "0 * sigma[..., 0, 1]  # of"),
    Mutant("score: half the exponent", "densities/gaussian.py", "FACTORS = (1.0, 2.0, 2.0, -1.0,", "FACTORS = (1.0, 2.0, 2.0, -0.5,"),
    Mutant("gradient of the mean halved", "densities/gaussian.py", "return 2 * product[..., 0]", "return product[..., 0]"),
    Mutant("gradient of the covariance without its determinant", "densities/gaussian.py", "beta=-1,", "beta=0,"),
    Mutant("gradient of the covariance halved", "densities/gaussian.py", "alpha=2,", "alpha=1,"),
    Mutant("gradient with the mean's sign", "densities/gaussian.py", "torch.cat([-linear[..., None]", "torch.cat([linear[..., None]"),
    Mutant("gradient of the correlation misplaced", "densities/gaussian.py", "(3, 5), (2, 3), (4, 6)]", "(4, 6), (2, 3), (3, 5)]"),
    Mutant("paraboloid: not normalised", "densities/paraboloid.py", "1 / (3 * math.pi * (", "1 / (2 * math.pi * ("),
    Mutant("paraboloid: determinant instead of its root", "densities/paraboloid.py", "(variance * spread).sqrt())", "(variance * spread))"),
    Mutant("paraboloid: not truncated", "densities/paraboloid.py", "(1 - squared_BRKP / SUPPORT).clamp_min(0)", "(1 - squared_BRKP / SUPPORT)"),
    Mutant("paraboloid: another support", "densities/paraboloid.py", "SUPPORT = 6.0", "SUPPORT = 5.0"),
    Mutant("paraboloid: correlation dropped", "densities/paraboloid.py", "slope = sigma[..., 0, 1] / variance", "slope = 0 * sigma[..., 0, 1] / variance"),
    Mutant("paraboloid: conditional variance", "densities/paraboloid.py", "sigma[..., 1, 1] - slope * sigma[..., 0, 1]", "sigma[..., 1, 1] + 0 * slope"),
    Mutant("paraboloid: chords as long at the edge", "densities/paraboloid.py", "spread * (1 - nodes_Q**2)", "spread * (1 - 0 * nodes_Q**2)"),
    Mutant("paraboloid: weights of another power", "densities/paraboloid.py", "8 / (3 * (NODES + 1)) * torch.sin(angles) ** 4", "2 / (NODES + 1) * torch.sin(angles) ** 2"),
    Mutant("paraboloid: too few nodes", "densities/paraboloid.py", "NODES = 112", "NODES = 60"),
    Mutant("paraboloid: rows and columns swapped", "densities/paraboloid.py", "r_BRKMM.flatten(-2)", "r_BRKMM.mT.flatten(-2)"),
    Mutant("paraboloid: basis not normalised", "densities/paraboloid.py", "/ (math.pi * scale**2)", "/ (2 * math.pi * scale**2)"),
    Mutant("chord: closed form without its edges", "densities/paraboloid.py", "* between + edges)", "* between)"),
    Mutant("chord: coefficient of the integral", "densities/paraboloid.py", "half**2 - m**2 - 0.5)", "half**2 - m**2 - 1)"),
    Mutant("chord: uniform weight", "densities/paraboloid.py", "closed = 0.75 * (", "closed = 0.5 * ("),
    Mutant("chord: second order of the series", "densities/paraboloid.py", "(2 * m**2 - 1) / 5", "(2 * m**2 - 1) / 3"),
    Mutant("chord: fourth order of the series", "densities/paraboloid.py", "(4 * m**4 - 12 * m**2 + 3) / 70", "(4 * m**4 - 12 * m**2 + 3) / 35"),
    Mutant("chord: no series", "densities/paraboloid.py", "SHORT_CHORD = 4e-4", "SHORT_CHORD = 0.0"),
    Mutant("chord: series for long ones", "densities/paraboloid.py", "SHORT_CHORD = 4e-4", "SHORT_CHORD = 4e-2"),
    Mutant("ellipse mass: uniform along the chord", "densities/paraboloid.py", "0.75 * t - 0.25 * t**3", "0.5 * t"),
    Mutant("ellipse mass: density of the row", "densities/paraboloid.py", "8 / (3 * math.pi) * torch.sin(theta) ** 4", "2 / math.pi * torch.sin(theta) ** 2"),
    Mutant("ellipse mass: panels do not end at the ellipse", "densities/paraboloid.py", "edges += [(turn - crossing).abs(), math.pi - (math.pi - turn - crossing).abs()]", "edges += [first, last]"),
    Mutant("ellipse mass: panels of a round ellipse", "densities/paraboloid.py", "turn = angle(slope * reach / column_reach)", "turn = angle(0 * slope * reach / column_reach)"),
    Mutant("paraboloids fall back to Gaussians", "densities/mixture.py", "return type(self)(*map", "return Mixture(*map"),
    Mutant("heads ignore the density", "heads/continuous.py", '"paraboloid": ParaboloidMixture', '"paraboloid": Mixture'),
]  # fmt: skip


def main() -> None:
    words = sys.argv[1:]
    chosen = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    for mutant in chosen:
        text = (ROOT / "attention" / mutant.file).read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            sys.exit(f"'{mutant.old}' does not stand once in {mutant.file}: fix '{mutant.name}'")
    os.environ["OMP_NUM_THREADS"] = "1"  # read by torch on import
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in LIBRARIES:
        importlib.import_module(name)
    print(f"{len(chosen)} mutants; the tests must pass without one and fail with each", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if not passes(copy_project(Path(folder) / "intact"), TESTS):
            sys.exit("the tests fail without any mutant")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=FORK) as pool:
        killed = list(pool.map(is_killed, chosen))
    survivors = [mutant for mutant, dead in zip(chosen, killed, strict=True) if not dead]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants were noticed")
    if survivors:
        sys.exit("not noticed: " + "; ".join(mutant.name for mutant in survivors))


def is_killed(mutant: Mutant) -> bool:
    """Whether a test fails in a copy of the project with this mutant."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        project = copy_project(Path(folder) / "mutant")
        path = project / "attention" / mutant.file
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        # the formula's own tests first: most mutants end there
        own = f"tests/attention/test_{path.stem}.py"
        killed = not passes(project, sorted(TESTS, key=lambda name: name != own))
    outcome = "noticed" if killed else "NOT NOTICED"
    line = f"{outcome:>12}  {mutant.name}  ({time.monotonic() - start:.0f} s)\n"
    print(line, end="", flush=True)  # in one piece: another process prints too
    return killed


def copy_project(target: Path) -> Path:
    """The package, its tests and their settings; nothing that is installed elsewhere."""
    for name in ("attention", "tests"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", target)
    return target


def passes(project: Path, tests: list[str]) -> bool:
    """Run tests of the copy, in a process of their own, until the first failure."""
    process = FORK.Process(target=run_tests, args=(project, tests))
    process.start()
    process.join()
    if process.exitcode not in (0, 1):
        sys.exit(f"pytest could not run:\n{(project / 'printed.txt').read_text()[-4000:]}")
    return process.exitcode == 0


def run_tests(project: Path, tests: list[str]) -> None:
    """End with pytest's exit code; nothing of the project itself may be imported yet."""
    for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
        del sys.modules[name]
    os.chdir(project)
    sys.path[0] = str(project)
    with (
        open("printed.txt", "w", encoding="utf-8") as printed,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        import attention

        assert Path(str(attention.__file__)).is_relative_to(project)
        # a failure is enough, whatever pytest would say about it
        code = pytest.main(["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", *tests])
    sys.exit(int(code))


if __name__ == "__main__":
    main()
