"""The one part that is compiled, where there is a compiler; everything else is in pyproject.toml.

Without one, installation goes on, and `ordercast.runtime.taking` does the same in Python.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "ordercast.runtime._taking",
            ["src/ordercast/runtime/_taking.c"],
            extra_compile_args=["-O2"],
            optional=True,
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
