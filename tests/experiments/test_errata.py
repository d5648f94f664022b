"""Slips of the papers that no other test shows, each by a computation; and the errata's links."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import matrix_normal, multivariate_normal, norm, ortho_group

from noiseshape.design.precision import filled
from noiseshape.privacy import delta, mu

ROOT = Path(__file__).parents[2]


def rng():
    return np.random.default_rng(1)


class TestFitnessForUse:
    def test_theorem_14_needs_all_columns_and_not_as_many_as_the_rank(self):
        """Its first k columns may be dependent: J is not 0, and k diagonals stay the same."""
        R = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # rank 2, first two columns equal
        J = np.diag([0.0, 1.0])
        for t in (0.3, 1.0):
            moved = R.T @ np.linalg.inv(np.eye(2) + t * J) @ R
            np.testing.assert_allclose(np.diag(moved)[:2], np.diag(R.T @ R)[:2])
            assert np.diag(moved)[2] != pytest.approx(1.0)


class TestImgm:
    def test_equation_2_has_the_exponents_of_the_determinants_swapped(self):
        m, n = 2, 4
        S1, S2 = (a @ a.T + np.eye(k) for k in (m, n) for a in [rng().normal(size=(k, k))])
        Z = rng().normal(size=(m, n))
        square = np.trace(np.linalg.inv(S2) @ Z.T @ np.linalg.inv(S1) @ Z)
        d1, d2 = np.linalg.slogdet(S1)[1], np.linalg.slogdet(S2)[1]
        base = -square / 2 - m * n / 2 * math.log(2 * math.pi)
        truth = multivariate_normal(cov=np.kron(S2, S1)).logpdf(Z.T.ravel())
        assert base - n / 2 * d1 - m / 2 * d2 == pytest.approx(truth)
        assert matrix_normal(rowcov=S1, colcov=S2).logpdf(Z) == pytest.approx(truth)
        printed = base - n / 2 * d2 - m / 2 * d1
        assert abs(printed - truth) > 0.5

    def test_equation_4_is_about_both_losses(self):
        """Its second term is of L_{X',X} under X'; both losses have one law, so nothing changes."""
        m, eps = 0.8, 0.5

        def loss(y, sign):  # log density ratio at y of N(sign m / 2, 1) to N(-sign m / 2, 1)
            return sign * m * y

        def chance(event, centre):
            def density(y):
                return norm.pdf(y - centre) * event(y)

            return integrate.quad(density, -12, 12, points=[-eps / m, eps / m], limit=200)[0]

        first = chance(lambda y: loss(y, 1) >= eps, m / 2)
        second = chance(lambda y: loss(y, -1) <= -eps, -m / 2)
        assert first - math.exp(eps) * second == pytest.approx(delta(eps, m), rel=1e-6)
        mirrored = chance(lambda y: loss(y, 1) <= -eps, m / 2)
        assert mirrored == pytest.approx(second, rel=1e-6)

    def test_equation_11_needs_the_inverse_and_not_the_inverse_transposed(self):
        W1, W2 = (ortho_group.rvs(3, random_state=k) for k in (1, 2))
        S = np.diag([3.0, 2.0, 1.0])
        D = np.diag([0.5, 0.3, 0.1])
        Delta, U1, U2 = W1 @ D @ W2.T, W1 @ S, W2 @ S
        moved = np.linalg.norm(np.linalg.inv(U1) @ Delta @ np.linalg.inv(U2).T)
        small = np.linalg.inv(S)
        assert moved == pytest.approx(np.linalg.norm(small @ D @ small))
        printed = small @ np.linalg.inv(W1).T @ W1 @ D @ W2.T @ np.linalg.inv(W2).T @ small
        assert np.linalg.norm(printed) != pytest.approx(moved, rel=0.05)

    def test_equation_35_is_only_an_inequality_and_lemma_4_holds(self):
        values = np.array([3.0, 1.0, 0.2])
        equal = 0
        for k in range(50):
            U, V = (ortho_group.rvs(3, random_state=100 * k + i) for i in (1, 2))
            b = U @ np.diag(values) @ V
            for t in (1, 2):
                left, right = (b[:, :t] ** 2).sum(), (values[:t] ** 2).sum()
                assert left <= right * (1 + 1e-12)
                equal += left == pytest.approx(right, rel=1e-3)
            A, C = (np.random.default_rng([k, i]).normal(size=(3, 3)) for i in (1, 2))
            s = [np.linalg.svd(M, compute_uv=False) for M in (A, b, C)]
            assert np.linalg.norm(A @ b @ C) ** 2 <= (s[0] * s[1] * s[2] @ (s[0] * s[1] * s[2]))
        assert equal < 5

    def test_sampling_does_not_amplify_to_epsilon_over_q(self):
        """A sample of a tenth, noise for (10 epsilon, 10 delta): delta is far above the claim."""
        eps, d, q = 1.0, 1e-5, 0.1
        m = float(mu(eps / q, d / q))
        # With q the record moves the answer by m: where the mixture's ratio exceeds e^eps.
        x = (math.log((math.exp(eps) - (1 - q)) / q) + m * m / 2) / m
        mixture = (1 - q) * norm.sf(x) + q * norm.sf(x - m)
        true = mixture - math.exp(eps) * norm.sf(x)
        assert true > 1000 * d


class TestMvg:
    def test_the_last_bound_of_theorem_3s_proof_needs_the_norm_squared(self):
        """One by one: Sigma^-1 = 10, f(X2) = gamma = 1, f(X1) = 1/2, s2 = 1/2."""
        inverse, f2, f1, gamma, s2, H = 10.0, 1.0, 0.5, 1.0, 0.5, 1.0
        left = inverse * (f2 - f1) * inverse * (f1 + f2)
        assert left > 2 * gamma * s2 * H * inverse  # as printed
        assert left <= 2 * gamma * s2 * H * inverse**2

    def test_water_filling_is_not_in_proportion_to_the_spectrum(self):
        """As the text has it, w_i would be in proportion to lambda_i; in equation 25 it is not."""
        spectrum = np.array([4.0, 2.0, 1.0])
        w = filled(spectrum, 30.0)
        assert np.ptp(w + 1 / spectrum) == pytest.approx(0, abs=1e-12)  # equation 25
        assert np.ptp(w / spectrum) > 0.5 * np.mean(w / spectrum)


NAMED = re.compile(r"\[`(test_\w+)`\]\(([^)]+)\)")


def test_every_test_that_the_errata_name_exists():
    links = NAMED.findall((ROOT / "docs" / "errata.md").read_text())
    assert len(links) > 30
    for name, place in links:
        assert f"def {name}(" in (ROOT / "docs" / place).read_text(), (name, place)


def test_every_line_of_the_errata_shows_what_shows_it():
    """Each row of each table has a link in its last column."""
    rows = [
        line
        for line in (ROOT / "docs" / "errata.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith(("| where", "| ---"))
    ]
    assert len(rows) > 30
    for row in rows:
        assert "](" in row.rstrip(" |").rsplit("|", 1)[1], row
