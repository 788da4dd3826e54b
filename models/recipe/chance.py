"""The one source of chance of the data generator: whichever generator set_rng() was given last."""

import random


class Chance:
    generator = random

    def __getattr__(self, name):
        return getattr(self.generator, name)


R = Chance()


def set_rng(generator):
    R.generator = generator


def C(options):
    return R.generator.choice(options)
