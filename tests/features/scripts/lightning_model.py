"""The module and the data that the Lightning scripts train."""

import torch
from lightning.pytorch import LightningModule
from torch.utils.data import DataLoader, TensorDataset


class Regression(LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def step(self, batch):
        inputs, targets = batch
        return (self.layers(inputs) - targets).square().mean()

    def training_step(self, batch):
        loss = self.step(batch)
        self.log("loss", loss, sync_dist=True)
        print(self.global_rank, self.global_step, loss.item().hex(), flush=True)
        return loss

    def validation_step(self, batch):
        self.log("validation", self.step(batch), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def data():
    generator = torch.Generator().manual_seed(7)
    inputs = torch.rand(64, 16, generator=generator)
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=8)
