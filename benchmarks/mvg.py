"""Section 6.4 of MVG, measured: processor seconds of both samplers and algorithms as matrices grow.

The paper states O(max(m^3, n^3)) for the affine sampler, O((m n)^2) for the Kronecker product of
the other, O(min(max(m^3, n^3), (m n)^2)) for Algorithm 1 and O(m^3) for Algorithm 2. Each line is
one run; the last column is the slope of the logarithms since the line before. The sampler on vec
has to factor its covariance too, (m n)^3 steps, which the paper leaves to the sampler it calls.

    python -m benchmarks.mvg [folder]     with a folder, the curves as a picture there
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from noiseshape.design.condition import Condition
from noiseshape.design.covariances import Covariances
from noiseshape.design.mvg import algorithm_1, algorithm_2
from noiseshape.design.precision import binary

# Okabe and Ito's colours, told apart by all; marks differ too.
CURVES = {
    "affine sampler": "#0072B2",
    "sampler on vec": "#D55E00",
    "Algorithm 1, m x 1,000": "#009E73",
    "Algorithm 2, m x m": "#CC79A7",
}
Curve = list[tuple[int, float]]


def main(folder: str | None = None) -> None:
    """Print the tables; with a folder, also draw the curves into it."""
    curves = {
        "affine sampler": _curve(_square(_affine), (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)),
        "sampler on vec": _curve(_square(_vec), (4, 8, 16, 32, 64)),
        "Algorithm 1, m x 1,000": _curve(_algorithm(1000), (32, 64, 128, 256, 512, 1024, 2048)),
        "Algorithm 2, m x m": _curve(_algorithm(None), (32, 64, 128, 256, 512, 1024, 2048)),
    }
    for name, curve in curves.items():
        print(f"{name}: seconds for one draw; slope of the logarithms since the line before.\n")
        print(_line("m", "seconds", "slope"))
        for at, (m, seconds) in enumerate(curve):
            print(_line(m, f"{seconds:.2e}", _slope(curve, at)))
        print()
    print("One matrix of 1,024 entries, by its shape: the affine sampler pays for the long side.\n")
    print(_line("m x n", "affine", "vec", "vec / affine"))
    for m in (1, 4, 16, 32):
        n = 1024 // m
        rows, columns = _definite(m), _definite(n)
        affine = _seconds(partial(_affine, rows, columns))
        vec = _seconds(partial(_vec, rows, columns), least=0.0)
        print(_line(f"{m} x {n}", f"{affine:.2e}", f"{vec:.2e}", f"{vec / affine:.1f}"), flush=True)
    if folder is not None:
        chart(curves).save(Path(folder) / "mvg-complexity.svg")


def chart(curves: dict[str, Curve]) -> Any:
    """Return the curves on two logarithmic axes, with the papers' slopes dashed."""
    import altair

    alt: Any = altair
    points = [
        {"m": m, "seconds": s, "line": name} for name, curve in curves.items() for m, s in curve
    ]
    # Through the last point of each: what section 6.4 states, and what factoring costs.
    slopes = {
        "m^3": ("affine sampler", 3),
        "m^4": ("sampler on vec", 4),
        "m^6": ("sampler on vec", 6),
    }
    guides = []
    for label, (name, power) in slopes.items():
        last, seconds = curves[name][-1]
        for share in (0.05 if power == 3 else 0.25, 1.0):
            guides.append({"m": last * share, "seconds": seconds * share**power, "slope": label})
    log = alt.Scale(type="log", nice=False, padding=12)
    seconds_axis = alt.Y(
        "seconds:Q", scale=log, title="processor seconds", axis=alt.Axis(tickCount=6, format="~g")
    )
    m_axis = alt.X("m:Q", scale=log, title="m", axis=alt.Axis(values=[4, 16, 64, 256, 1024]))
    names = list(curves)
    base = alt.Chart(alt.Data(values=points)).encode(
        x=m_axis,
        y=seconds_axis,
        color=alt.Color(
            "line:N", scale=alt.Scale(domain=names, range=list(CURVES.values())), title=None
        ),
        shape=alt.Shape("line:N", scale=alt.Scale(domain=names), title=None),
    )
    lines = alt.Chart(alt.Data(values=guides)).encode(x=m_axis, y=seconds_axis, detail="slope:N")
    ends = lines.transform_filter("datum.slope != ''").transform_aggregate(
        m="min(m)", seconds="min(seconds)", groupby=["slope"]
    )
    layers = [
        lines.mark_line(color="#555555", strokeDash=[4, 3], strokeWidth=1),
        ends.mark_text(align="right", dx=-4, color="#333333").encode(text="slope:N"),
        base.mark_line(strokeWidth=2),
        base.mark_point(filled=True, size=55, opacity=1),
    ]
    return (
        alt.layer(*layers)
        .properties(
            width=460,
            height=320,
            title=alt.Title("MVG's samplers and algorithms, one draw, one thread", anchor="start"),
        )
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, gridOpacity=0.5)
        .configure_legend(labelFontSize=12)
    )


def _curve(act: Callable[[int], Callable[[], None]], sizes: tuple[int, ...]) -> Curve:
    return [(m, _seconds(act(m))) for m in sizes]


def _slope(curve: Curve, at: int) -> str:
    if at == 0:
        return ""
    (m, before), (k, now) = curve[at - 1], curve[at]
    return f"{math.log(now / before) / math.log(k / m):.2f}"


def _square(act: Callable[[np.ndarray, np.ndarray], None]) -> Callable[[int], Callable[[], None]]:
    def at(m: int) -> Callable[[], None]:
        Sigma = _definite(m)
        return partial(act, Sigma, Sigma)

    return at


def _algorithm(n: int | None) -> Callable[[int], Callable[[], None]]:
    def at(m: int) -> Callable[[], None]:
        W = np.linalg.qr(np.random.default_rng(m).normal(size=(m, m)))[0]
        return partial(_draw, m, n or m, W, n is None)

    return at


def _affine(rows: np.ndarray, columns: np.ndarray) -> None:
    Covariances(rows, columns).simulate_affine(1, seed=1)


def _vec(rows: np.ndarray, columns: np.ndarray) -> None:
    Covariances(rows, columns).simulate_vec(1, seed=1)


def _draw(m: int, n: int, W: np.ndarray, both: bool) -> None:
    c = Condition(m=m, n=n, s2=1.0, gamma=1.0, epsilon=1.0, delta=1e-5)
    theta = binary(m, [0], 0.5)
    noise = algorithm_2(c, theta, W) if both else algorithm_1(c, theta, W)
    noise.simulate_affine(1, seed=1)


def _definite(k: int) -> np.ndarray:
    M = np.random.default_rng(k).normal(size=(k, k + 2))
    return M @ M.T / k + np.eye(k)


def _seconds(act: Callable[[], object], least: float = 0.2) -> float:
    """Return processor seconds a call: the best of several, over ``least`` seconds in all."""
    best, spent = math.inf, 0.0
    while True:
        start = time.process_time()
        act()
        took = time.process_time() - start
        best, spent = min(best, took), spent + took
        if spent >= least:
            return best


def _line(*cells: object) -> str:
    return " ".join(str(cell).rjust(13) for cell in cells)


if __name__ == "__main__":
    main(*sys.argv[1:2])
