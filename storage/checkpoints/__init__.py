"""Log directories and the small files in them: checkpoints, leader epochs, owner, markers."""
