"""Tools beside kernels.

Example:
>>> from blocknumba.triton.tools.tensor_descriptor import TensorDescriptor
>>> triton.tools.tensor_descriptor.TensorDescriptor is TensorDescriptor
True
"""
