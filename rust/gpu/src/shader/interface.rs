//! The bindings of a shader, read from its source: names and access of its arrays, the length of its sizes.

use isometry_core::{Error, Result};
use wgpu::naga::{AddressSpace, Module, StorageAccess, front::wgsl};

/// An array that a shader binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Its name in the shader.
    pub name: String,
    /// Its number in group 0.
    pub number: u32,
    /// Whether the shader writes it.
    pub written: bool,
}

/// The interface of a shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its arrays.
    pub bindings: Vec<Binding>,
    /// Bytes of its sizes (`var<immediate>`).
    pub sizes: u32,
}

impl Interface {
    /// The interface of a source with its modules.
    pub fn of(name: &str, text: &str) -> Result<Self> {
        let module = wgsl::parse_str(text)
            .map_err(|error| Error::Device(format!("shader {name}: {}", error.emit_to_string(text))))?;
        Ok(Interface { bindings: bindings(&module), sizes: sizes(&module) })
    }
}

fn bindings(module: &Module) -> Vec<Binding> {
    let mut found: Vec<Binding> = module
        .global_variables
        .iter()
        .filter_map(|(_, variable)| {
            let AddressSpace::Storage { access } = variable.space else { return None };
            let number = variable.binding.filter(|binding| binding.group == 0)?.binding;
            let written = access.contains(StorageAccess::STORE);
            Some(Binding { name: variable.name.clone().unwrap_or_default(), number, written })
        })
        .collect();
    found.sort_by_key(|binding| binding.number);
    found
}

fn sizes(module: &Module) -> u32 {
    let immediate = |(_, variable): (_, &wgpu::naga::GlobalVariable)| {
        (variable.space == AddressSpace::Immediate)
            .then(|| module.types[variable.ty].inner.size(module.to_ctx()))
    };
    module.global_variables.iter().find_map(immediate).unwrap_or(0)
}
