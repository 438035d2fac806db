"""The probe is a Flower app that SuperNodes import, not pytest."""

collect_ignore = ["probe"]
