"""Export: the results of a study, or of an analysis, in the programs that teams keep their experiments in.

A study becomes a run for each model and adapter, and one for the study itself, which carries the page and the table. An
analysis becomes one run. Every target takes the same record of them (`haptera.export.record`), and exporting twice does
not double: a run that is there and says the same is left alone, and one that says something else is replaced.
"""

from haptera.export.card import ModelCard, model_card
from haptera.export.mlflow import to_mlflow
from haptera.export.record import Metric, Outcome, Record, Run, record_of
from haptera.export.tensorboard import to_tensorboard
from haptera.export.wandb import to_wandb

__all__ = [
    "Metric",
    "ModelCard",
    "Outcome",
    "Record",
    "Run",
    "model_card",
    "record_of",
    "to_mlflow",
    "to_tensorboard",
    "to_wandb",
]
