//! Changes of a shader's text. They rely on how these shaders are written: a builtin is a parameter of `main`, and a
//! barrier has a line.

/// The source without its barrier of this number; the others keep theirs.
pub fn without_barrier(source: &str, number: usize) -> String {
    let mut left = number;
    let mut keeps = |line: &&str| {
        let found = is_barrier(line);
        left = left.wrapping_sub(usize::from(found));
        !(found && left == usize::MAX)
    };
    source.lines().filter(|line| keeps(line)).collect::<Vec<_>>().join("\n") + "\n"
}

/// Whether a line is a barrier.
pub fn is_barrier(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("workgroupBarrier();") || line.starts_with("storageBarrier();")
}

/// The text around the parameters of `main`, and the three sizes of `@workgroup_size`.
pub struct Main<'t> {
    before: &'t str,
    parameters: &'t str,
    body: &'t str,
    size: [&'t str; 3],
}

impl<'t> Main<'t> {
    pub fn of(text: &'t str) -> Self {
        let (before, rest) = text.split_once("fn main(").expect("a shader has a function main");
        let (parameters, body) = rest.split_once(") {\n").expect("the parameters end a line");
        let (_, size) = before.rsplit_once("@workgroup_size(").expect("main has a size");
        let size = size.split_once(')').expect("the size ends").0;
        let mut sizes = size.split(", ").chain(["1u"; 2]);
        let size = std::array::from_fn(|_| sizes.next().expect("three sizes"));
        Main { before, parameters, body, size }
    }

    /// With other parameters, and statements before all others.
    pub fn with(&self, parameters: &str, statements: &str) -> String {
        format!("{}fn main({parameters}) {{\n{statements}{}", self.before, self.body)
    }

    /// The parameter of a builtin.
    pub fn parameter(&self, builtin: &str) -> Option<&'t str> {
        let (_, rest) = self.parameters.split_once(&format!("@builtin({builtin}) "))?;
        rest.split_once(':').map(|(name, _)| name)
    }

    /// The parameters with one that is the number of workgroups, and its name.
    pub fn with_groups(&self) -> (String, &'t str) {
        match self.parameter("num_workgroups") {
            Some(groups) => (self.parameters.to_string(), groups),
            None => {
                let name = "groups_given";
                (format!("@builtin(num_workgroups) {name}: vec3<u32>, {}", self.parameters), name)
            }
        }
    }

    /// The number of an invocation among those of its workgroup.
    pub fn local(&self) -> String {
        let [width, height, _] = self.size;
        match self.parameter("local_invocation_id") {
            Some(name) => format!("(({name}.z * {height} + {name}.y) * {width} + {name}.x)"),
            None => self.parameter("local_invocation_index").expect("main knows its invocation").to_string(),
        }
    }
}

/// Invocations and workgroups in the other order.
pub fn reversed(text: &str) -> String {
    let main = Main::of(text);
    let [width, height, depth] = main.size;
    let (mut parameters, groups) = main.with_groups();
    let mut statements = String::new();
    let places = [
        ("workgroup_id", format!("{groups} - 1u")),
        ("local_invocation_id", format!("vec3<u32>({width}, {height}, {depth}) - 1u")),
        ("local_invocation_index", format!("{width} * {height} * {depth} - 1u")),
    ];
    for (builtin, last) in places {
        if let Some(name) = main.parameter(builtin) {
            parameters = parameters.replace(
                &format!("@builtin({builtin}) {name}:"),
                &format!("@builtin({builtin}) {name}_given:"),
            );
            statements += &format!("    let {name} = {last} - {name}_given;\n");
        }
    }
    main.with(&parameters, &statements)
}

/// Workgroup memory that holds NaN where the shader begins, and the largest integers.
pub fn unwritten(text: &str) -> String {
    let main = Main::of(text);
    let (local, all) = (main.local(), main.size.join(" * "));
    // of a value that no compiler knows, as WGSL has no constant that is NaN
    let mut statements = format!(
        "    let poison_bits = 0xffffffffu - min({local}, 1u);\n    let poison = bitcast<f32>(poison_bits);\n"
    );
    for line in text.lines() {
        let Some((name, array)) =
            line.strip_prefix("var<workgroup> ").and_then(|rest| rest.split_once(": array<"))
        else {
            continue;
        };
        let (of, length) =
            array.split_once(';').map_or(array, |(array, _)| array).rsplit_once(", ").expect("a length");
        let length = length.trim_end_matches('>');
        let value = |of: &str| match of {
            "T" => Some("from_parts(vec2<f32>(poison))".to_string()),
            "f32" | "vec2<f32>" | "vec4<f32>" => Some(format!("{of}(poison)")),
            "u32" => Some("poison_bits".to_string()),
            _ => None,
        };
        let statement = match (value(of), of) {
            (Some(value), _) => format!("{name}[poisoned] = {value};"),
            (None, "atomic<u32>") => format!("atomicStore(&{name}[poisoned], poison_bits);"),
            (None, structure) => fields(text, structure)
                .map(|(field, of)| {
                    format!("{name}[poisoned].{field} = {};", value(of).expect("a field of numbers"))
                })
                .collect(),
        };
        statements += &format!(
            "    for (var poisoned = {local}; poisoned < u32({length}); poisoned += u32({all})) {{ {statement} }}\n"
        );
    }
    main.with(main.parameters, &(statements + "    workgroupBarrier();\n"))
}

/// Names and types of the fields of a structure.
fn fields<'t>(text: &'t str, structure: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let (_, rest) = text.split_once(&format!("struct {structure} {{\n")).expect("a declared structure");
    let lines = rest.lines().take_while(|line| !line.starts_with('}'));
    lines.filter_map(|line| {
        let (name, of) = line.split("//").next()?.trim().trim_end_matches(',').split_once(": ")?;
        Some((name, of))
    })
}
