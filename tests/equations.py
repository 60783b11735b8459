"""Where the code computes each equation of the paper, read from the docstrings of attention/.

`python -m tests.equations` prints the table; with --write it takes its place in
docs/architecture.md. A function is tagged by `Eq. (n)`, `Eqs. (n)–(m)` or `Algorithm 1, Name`.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
OPENING, CLOSING = "<!-- equations -->", "<!-- /equations -->"
CONTENTS = {
    "(1)": "value function V_B(x) = Bψ(x)",
    "(2)": "score function f(x) = −½ (x − μ)ᵀ Σ⁻¹ (x − μ)",
    "(3)": "context vector c = B·E_p[ψ(x)]",
    "(4)": "mixture p(x) = Σ_k π_k p_k(x)",
    "(5)": "context of a mixture c = Σ_k π_k c_k",
    "(6)": "weighted log-likelihood",
    "(7)": "weighted log-likelihood of a mixture of Gaussians",
    "(8)": "E-step: responsibilities γ_ℓk",
    "(9)": "M-step: mixing coefficients π_k",
    "(10)": "M-step: means μ_k",
    "(11)": "M-step: covariances Σ_k",
    "(12)": "k* = argmin_k C(Θ̂_k, k)",
    "(13)": "criterion C(Θ̂_k, k): minus twice the log-likelihood, plus a penalty P(k)",
    "(14)": "penalty P(k) = λk",
    "(15)": "criterion with this penalty",
    "WeightedEM": "Algorithm 1",
    "ModelSelection": "Algorithm 1",
    "MultimodalAttention": "Algorithm 1",
}


@dataclass(frozen=True)
class Place:
    """A function whose docstring names an equation."""

    file: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"`{self.name}`, [{self.file}:{self.line}](../{self.file}#L{self.line})"


def find_places(package: Path = ROOT / "attention") -> dict[str, list[Place]]:
    """The functions that name each equation and each function of Algorithm 1."""
    places: dict[str, list[Place]] = {}
    for path in sorted(package.rglob("*.py")):
        file = str(path.relative_to(package.parent))
        for name, node in list_functions(ast.parse(path.read_text(encoding="utf-8"))):
            for tag in list_tags(ast.get_docstring(node) or ""):
                places.setdefault(tag, []).append(Place(file, node.lineno, name))
    return places


def list_functions(
    node: ast.Module | ast.ClassDef, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of a module, and the methods of its classes by `Class.method`."""
    for child in node.body:
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from list_functions(child, f"{child.name}.")


def list_tags(docstring: str) -> Iterator[str]:
    """`Eqs. (9)–(11)` gives (9), (10), (11)."""
    for first, last in re.findall(r"Eqs?\. \((\d+)\)(?:–\((\d+)\))?", docstring):
        yield from (f"({number})" for number in range(int(first), int(last or first) + 1))
    yield from re.findall(r"Algorithm 1, (\w+)", docstring)


def make_table() -> str:
    """Markdown: one row for each equation, in the paper's order."""
    places = find_places()
    rows = [
        f"| {tag} | {content} | {'; '.join(map(str, places.get(tag, [])))} |"
        for tag, content in CONTENTS.items()
    ]
    return "\n".join(["| paper | what | where |", "|---|---|---|", *rows])


def split_page() -> tuple[str, str, str]:
    """The page before, between and after the two marks."""
    before, rest = PAGE.read_text(encoding="utf-8").split(OPENING)
    table, after = rest.split(CLOSING)
    return before, table.strip(), after


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        before, _, after = split_page()
        PAGE.write_text(f"{before}{OPENING}\n{make_table()}\n{CLOSING}{after}", encoding="utf-8")
    else:
        print(make_table())
