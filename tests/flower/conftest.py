"""The probe and the race are Flower apps, which SuperNodes import and pytest does not."""

collect_ignore = ["probe", "race"]
