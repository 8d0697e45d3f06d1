"""`triton.language.core`: the language under the name of the module that defines it in Triton."""

from blocknumba.triton.language import *  # noqa: F403  the module is made of its names
