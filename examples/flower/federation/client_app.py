"""The client's side, in one line. Has your app a training loop already? See `own_loop.py`."""

from federation import task
from turnout.flower import client_app

app = client_app(lambda context: task.algorithm(context.run_config), task.model(), task.own_data)
