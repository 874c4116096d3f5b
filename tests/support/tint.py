"""Tint, the WGSL compiler of Chromium, through Dawn's Python package, on a device that needs no driver."""

import ctypes
import os
import re

from pydawn import utils
from pydawn import webgpu as w

utils.supported_backends["Null"] = w.WGPUBackendType_Null


def device():
    os.environ["BACKEND_TYPE"] = "Null"
    return utils.request_device_sync(utils.request_adapter_sync(w.WGPUPowerPreference_HighPerformance))


def refused(device, text, constants):
    """What Tint says against a compute shader with these constants; empty where it accepts it."""
    # immediates are an extension of wgpu: uniforms in their place, in which a struct is aligned to 16 bytes
    text = text.replace("var<immediate> ", "@group(1) @binding(0) var<uniform> ")
    text = re.sub(r"^( +)(\w+: (?:RowActivation|Operand),)", r"\1@align(16) \2", text, flags=re.MULTILINE)
    module, message = said(device, lambda: module_of(device, text))
    return message or said(device, lambda: pipeline_of(device, module, constants))[1]


def module_of(device, text):
    source = w.WGPUShaderSourceWGSL()
    source.chain.sType = w.WGPUSType_ShaderSourceWGSL
    source.code = utils.to_wgpu_str(text)
    described = w.WGPUShaderModuleDescriptor()
    described.nextInChain = ctypes.cast(ctypes.pointer(source), ctypes.POINTER(w.struct_WGPUChainedStruct))
    return w.wgpuDeviceCreateShaderModule(device, described)


def pipeline_of(device, module, constants):
    described = w.WGPUComputePipelineDescriptor()
    described.compute.module, described.compute.entryPoint = module, utils.to_wgpu_str("main")
    entries = (w.WGPUConstantEntry * len(constants))()
    for entry, (name, value) in zip(entries, constants.items(), strict=True):
        entry.key, entry.value = utils.to_wgpu_str(name), float(value)
    described.compute.constantCount = len(constants)
    if constants:
        described.compute.constants = ctypes.cast(entries, ctypes.POINTER(w.WGPUConstantEntry))
    return w.wgpuDeviceCreateComputePipeline(device, described)


def said(device, make):
    """What `make` gives, and the error that it causes."""
    w.wgpuDevicePushErrorScope(device, w.WGPUErrorFilter_Validation)
    made, messages = make(), []

    def keep(status, kind, message, *_):
        messages.append(utils.from_wgpu_str(message) if message.length else "")

    info = w.WGPUPopErrorScopeCallbackInfo()
    info.mode, callback = w.WGPUCallbackMode_WaitAnyOnly, w.WGPUPopErrorScopeCallback(keep)
    info.callback = callback
    utils.wait(w.wgpuDevicePopErrorScopeF(device, info))
    return made, "".join(messages)
