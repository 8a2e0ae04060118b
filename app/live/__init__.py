"""The parts of the Live page: actions, notices, raster, charts, comparison."""
