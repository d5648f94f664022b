"""Mechanisms that MVG's experiments compare with, and that the library does not offer.

All are in doubles and seeded: for experiments. Each is tested against its own paper's definition
or a closed form (tests/experiments/test_baselines.py).

    additive      Laplace (Dwork et al. 2006) and Gaussian noise with the classic calibration
    exponential   the exponential mechanism over databases (Blum, Ligett and Roth 2013)
    components    principal components by the exponential mechanism (Chaudhuri et al. 2012)
    projection    Johnson-Lindenstrauss sketches (Blocki et al. 2012, Upadhyay 2014)
    ridge         kernel ridge regression
"""
