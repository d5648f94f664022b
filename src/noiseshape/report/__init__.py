"""Pictures and the HTML report: what a plan or a release says, to be looked at."""
