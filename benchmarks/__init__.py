"""Ratios measured in one run: against a published algorithm, a peer library, or the floor.

``python -m benchmarks`` runs every module of this folder that has a ``main``; name some to run
only those. Timings are of this machine at this moment; what is compared is measured side by side.
"""
