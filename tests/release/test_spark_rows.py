"""Row by row on a cluster: tasks that fail, and tasks that run twice, measure nobody twice."""

import threading

import numpy as np
import pytest

import noiseshape as ns

pytestmark = pytest.mark.xdist_group("spark")

BOUNDS = {"x": (0, 1), "y": (-2, 2)}
N, ROWS = 33, 7
STDERR = 2.0**-8


def made():
    row = ns.identity(bounds=BOUNDS, n=1)
    return ns.isotropic(row, stderr=STDERR).row_by_row(N, rows=ROWS, key="at")


def people():
    """Numbered rows with one number that is none; in no order, one key twice, others outside."""
    i = np.arange(N)
    x = np.where(i == 8, np.nan, (i * 37 % 101) / 100)
    return [(int(k), float(a), float(b)) for k, a, b in zip(i, x, i % 4 - 1.5, strict=True)]


def frame(spark):
    others = [(N, 0.5, 0.5), (-1, 0.5, 0.5), (None, 0.5, 0.5), (12, 0.999, 0.5)]
    rows = [row for row in people() if row[0] not in (20, 30, 31, 32)] + others
    rows = [rows[i] for i in np.argsort([hash(str(row)) for row in rows])]
    return spark.createDataFrame(rows, "at int, x double, y double").repartition(3)


def expected():
    """What is asked, without noise: rows that are not there are the middle of the bounds."""
    X = np.array([row[1:] for row in people()])
    X[8, 0] = 0.5
    X[[20, 30, 31, 32]] = (0.5, 0)
    return X


def book(folder, plan):
    return ns.Ledger.create(folder / "b.db", ns.Budget(mu=plan.cost.mu), people=plan.people)


class Unreliable:
    """Rows of a cluster some of whose tasks die, and all of which run twice at once."""

    def __init__(self, stream, log):
        self.stream, self.log = stream, log

    def cells(self):
        return self.stream.cells()

    def known(self):
        return []

    def read(self):
        return self

    def feed(self, wanted, take):
        log = self.log

        def taken(number, z):
            import hashlib
            import os
            import time

            from pyspark import TaskContext

            attempt = TaskContext.get().attemptNumber()
            try:
                os.close(os.open(f"{log}-{number}", os.O_CREAT | os.O_EXCL))
                first = True
            except FileExistsError:
                first = False
            if number == 0 and first:
                raise RuntimeError("this machine went away before it drew anything")
            time.sleep(0.05)
            take(number, z)
            drawn = hashlib.sha256(take.chunks.read(number).tobytes()).hexdigest()
            with open(f"{log}/{number}-{attempt}-{os.getpid()}-{time.monotonic_ns()}", "w") as file:
                file.write(f"{number} {drawn}")
            if number == 4 and first:
                raise RuntimeError("this machine went away after it had kept its draw")

        failed = []

        def one():
            try:
                self.stream.feed(wanted, taken)
            except Exception as error:  # told by the test's thread
                failed.append(error)

        both = [threading.Thread(target=one) for _ in range(2)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        assert not failed, failed


def test_tasks_that_fail_or_run_twice_measure_nobody_twice(spark, tmp_path):
    plan = made()
    ledger = book(tmp_path, plan)
    log = tmp_path / "log"
    log.mkdir()
    rows = Unreliable(plan.source(frame(spark)), str(log))
    release = plan.release(rows, ledger=ledger, out=tmp_path / "out")
    seen = [file.read_text().split() for file in log.iterdir()]
    again = [file for file in log.iterdir() if file.name.split("-")[1] != "0"]
    assert len(seen) > 2 * plan.chunks  # two jobs, and tasks that came back to what was kept
    assert again
    assert len(set(map(tuple, seen))) == plan.chunks, "two draws of one chunk were seen"
    assert {int(number) for number, _ in seen} == set(range(plan.chunks))
    assert not list(release.kept.path.glob(".*"))
    found = np.concatenate(list(ns.read(tmp_path / "out")))
    assert np.abs(found - expected()).max() < 7 * STDERR
    noise = found - expected()
    alike = {tuple(noise[at : at + 4].ravel()) for at in range(0, N, ROWS)}
    assert len(alike) == plan.chunks  # each task had secret bits of its own
    assert len(ledger.history()) == 1


def test_a_cluster_that_gives_up_is_continued(spark, tmp_path):
    plan = made()
    ledger = book(tmp_path, plan)
    broken = frame(spark).selectExpr(
        "at", "x", "if(at = 25, cast(raise_error('person 25') as double), y) y"
    )
    with pytest.raises(ns.ReleaseFailed, match=r"at the step 'measure'\. Ledger entry 1 stands"):
        plan.release(broken, ledger=ledger, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    release = plan.release(frame(spark), ledger=ledger, out=tmp_path / "out", resume=1)
    assert np.abs(np.concatenate(list(release)) - expected()).max() < 7 * STDERR
    assert len(ledger.history()) == 1


def test_a_frame_without_a_key_is_refused(spark):
    keyless = ns.isotropic(ns.identity(bounds=BOUNDS, n=1), stderr=1).row_by_row(N, rows=ROWS)
    as_text = frame(spark).selectExpr("x", "y", "cast(at as string) at")
    for plan, rows in ((keyless, frame(spark)), (made(), as_text)):
        with pytest.raises(ns.InvalidInput, match="no order that stays"):
            plan.release(rows, unrecorded=True)
