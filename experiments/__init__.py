"""One script for each table and figure of the three papers, and for what we claim ourselves.

``noiseshape reproduce --list | NAME | --all`` runs them. What the papers print is in
``printed.json``, typed from their texts; it is shown beside what was measured and goes into no
computation. Mechanisms that the papers compare with and that the library does not offer are in
``baselines``.

The protocol was fixed before any result was looked at:

- every draw of noise is fresh; generators are seeded by the name of the experiment and of the case
  (``harness.generator``), so that a run can be repeated, and never chosen;
- means over trials or draws come with 95 % intervals by Student's t;
- what a paper leaves open is decided by its text, then by its authors' program, and said; nothing
  is tuned towards a printed number.
"""
