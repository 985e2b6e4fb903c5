"""Lightning's Trainer with its FSDP strategy, on CPU.

Lightning asks for a GPU where the strategy is exactly `FSDPStrategy`; a class derived from it may have a CPU.
"""

from lightning.pytorch import Trainer, seed_everything
from lightning.pytorch.strategies import FSDPStrategy
from lightning_model import Regression, data


class FSDPOnCpu(FSDPStrategy):
    pass


if __name__ == "__main__":
    seed_everything(3)
    trainer = Trainer(
        accelerator="cpu",
        devices=2,
        strategy=FSDPOnCpu(),
        max_epochs=2,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
    )
    trainer.fit(Regression(), data(), data())
    print(trainer.global_rank, {name: value.item().hex() for name, value in sorted(trainer.callback_metrics.items())})
