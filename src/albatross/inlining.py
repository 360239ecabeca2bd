"""Compile functions that only compiled code calls: type and lower them once, and optimise them in their caller.

Numba makes a library of machine code from every function, optimised together with everything that it calls. For a
policy of fifty small functions in ten levels, it would compile the innermost function ten times. Here the library of
such a function keeps its code unoptimised. The function that Python calls collects all of them, links each once and
optimises the whole once.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding as llvm
from numba.core import config as numba_config
from numba.core.codegen import JITCodeLibrary, _parse_refprune_flags
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering

from albatross.machine_code import announced

config: Any = numba_config  # whose names are set while it is imported
_ENVIRONMENT = "_ZN08NumbaEnv"  # how Numba's names of environments begin


class InnerLibrary(JITCodeLibrary):
    """The code of a function that only compiled code calls: never run on its own, so neither optimised nor emitted."""

    _whole: Any = None

    def finalize(self) -> None:
        self._finalized = True

    def own_module(self) -> Any:
        """Return the function's own code, to be linked."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        # For callers that are not ours, which know of no further libraries: the function with all that it calls.
        if self._whole is None:
            self._whole = self.own_module().clone()
            for needed in _needed_by(self):
                self._whole.link_in(_module_of(needed), preserve=True)
        return self._whole


class OuterLibrary(JITCodeLibrary):
    """The code of a function that Python calls, with all that it calls."""

    def finalize(self) -> None:
        for needed in _needed_by(self):
            self._final_module.link_in(_module_of(needed), preserve=True)
        self._linking_libraries = []
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimise as Numba does, but at level 2 and without unrolling loops.

        That is a third less machine code, which takes a third less time to make, and the same numbers at the same
        speed. Loops are still vectorised, and the vectorised ones interleaved.
        """
        codegen, module = self._codegen, self._final_module
        if config.OPT != 3 or not config.LLVM_REFPRUNE_PASS or not hasattr(codegen, "_pass_builder"):
            super()._optimize_final_module()  # other settings, or an older Numba
            return
        first, builder = codegen._module_pass_manager(
            loop_vectorize=codegen._loopvect, slp_vectorize=False, opt=codegen._opt_level, cost="cheap"
        )
        first.run(module, builder)
        tuning = llvm.create_pipeline_tuning_options(speed_level=2)
        tuning.loop_unrolling = False
        tuning.loop_vectorization = config.LOOP_VECTORIZE
        tuning.slp_vectorization = config.SLP_VECTORIZE
        builder = llvm.create_pass_builder(codegen._tm, tuning)
        full = builder.getModulePassManager()
        full.add_refprune_pass(_parse_refprune_flags())
        full.run(module, builder)


def _module_of(library: Any) -> Any:
    return library.own_module() if isinstance(library, InnerLibrary) else library._get_module_for_linking()


def _needed_by(library: Any) -> Iterator[Any]:
    """Return all libraries that this one's code calls, directly or not, each once."""
    seen, waiting = {library}, list(library._linking_libraries)
    while waiting:
        needed = waiting.pop(0)
        if needed not in seen:
            seen.add(needed)
            yield needed
            if isinstance(needed, InnerLibrary):
                waiting += needed._linking_libraries


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):
    """Lower a function that only compiled code calls."""

    _name = "inner_lowering"
    _inline = False

    def run_pass(self, state: Any) -> bool:
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        flags = state.flags  # a copy: what the function calls is compiled under the flags that its options say
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        flags.forceinline = self._inline
        super().run_pass(state)
        key = list[Any]().copy  # Numba finds code by a built-in function, and this one is nobody else's
        state.targetctx.insert_user_function(key, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=key)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class VerbLowering(InnerLowering):
    """Lower a verb. It is always inlined, which saves counting references to the arrays of a state."""

    _name = "verb_lowering"
    _inline = True


@register_pass(mutates_CFG=True, analysis_only=False)
class OuterLowering(NativeLowering):
    """Lower a function that Python calls."""

    _name = "outer_lowering"

    def run_pass(self, state: Any) -> bool:
        codegen = state.targetctx.codegen()
        state.library = OuterLibrary(codegen, state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_cfunc_wrapper = True  # nothing calls it from C
        super().run_pass(state)
        for name in {variable.name for variable in state.library._final_module.global_variables}:
            environment = lookup_environment(name) if name.startswith(_ENVIRONMENT) else None
            if environment is not None:
                codegen.set_env(name, environment)
        return True


class _Compiler(CompilerBase):
    """Numba's compiler with another last step."""

    lowering: type

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(self.lowering, NativeLowering)
        pipeline.passes = [each for each in pipeline.passes if each[0] is not NativeLowering]
        pipeline.finalize()
        return [pipeline]


class InnerCompiler(_Compiler):
    """For helpers."""

    lowering = InnerLowering


class VerbCompiler(_Compiler):
    """For verbs."""

    lowering = VerbLowering


class OuterCompiler(_Compiler):
    """For functions that Python calls."""

    lowering = OuterLowering

    def compile_extra(self, function: Any) -> Any:
        subjects = [each.instance_class.__name__ for each in self.state.args[:1] if hasattr(each, "instance_class")]
        name = f"{function.__module__}.{function.__qualname__}"
        with announced(" for ".join([name, *subjects])), _uncollected():
            return super().compile_extra(function)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Do not collect garbage: Numba makes millions of objects that stay, and looking at them takes 10 % of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
