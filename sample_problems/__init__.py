"""Problems from the literature to try a solver on, one file each."""
