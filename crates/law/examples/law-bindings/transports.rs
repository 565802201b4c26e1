// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The Rust side of law/cc/*.h, which is safe: every function that is marked ONR_PUBLIC, and the structures that it needs.
//! A structure that no function changes is input, with public fields. One that functions change is state: others begin with
//! its default and read it.

use std::collections::BTreeSet;
use std::fs;

use bindgen::callbacks::{DeriveInfo, ParseCallbacks};
use syn::visit_mut::{self, VisitMut};
use syn::{
    parse_quote, Fields, FnArg, ForeignItem, Ident, Item, ItemStruct, Safety, Type, Visibility,
};

/// What makes a function of a header one of Rust.
const MARK: &str = "ONR_PUBLIC ";

/// Their headers, from the crate's folder.
pub fn headers() -> Vec<String> {
    let folder = format!("{}/law/cc", super::CRATE);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut headers: Vec<String> = names
        .map(|name| format!("law/cc/{}", name.to_str().expect("UTF-8")))
        .collect();
    headers.sort();
    headers
}

/// Names of the marked functions of a header.
fn marked(text: &str) -> impl Iterator<Item = &str> {
    let after = text.lines().filter_map(|line| line.strip_prefix(MARK));
    after.map(|rest| {
        let (head, _) = rest.split_once('(').expect("a function");
        head.rsplit([' ', '*']).next().expect("its name")
    })
}

/// What bindgen makes of them, as Rust writes it.
pub fn generate(builder: bindgen::Builder) -> String {
    let mut builder = builder
        .parse_callbacks(Box::new(Derive))
        .generate_comments(true)
        .clang_arg("-fparse-all-comments");
    for header in headers() {
        let path = format!("{}/{header}", super::CRATE);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        for name in marked(&text) {
            builder = builder.allowlist_function(name);
        }
        builder = builder.header(path);
    }
    safe(&super::written(builder))
}

/// A configuration is plain bytes, which the kernel's program gets; bytemuck proves that it has no padding. State is not:
/// not all bytes are a state.
#[derive(Debug)]
struct Derive;

impl ParseCallbacks for Derive {
    fn add_derives(&self, info: &DeriveInfo<'_>) -> Vec<String> {
        match info.name.ends_with("_cfg") {
            true => vec!["bytemuck::Pod".into(), "bytemuck::Zeroable".into()],
            false => vec![],
        }
    }
}

fn safe(raw: &str) -> String {
    let mut file = syn::parse_file(raw).expect("bindgen writes Rust");
    let mut changed = Changed::default();
    changed.visit_file_mut(&mut file);
    let items = std::mem::take(&mut file.items);
    file.items = items
        .into_iter()
        .flat_map(|item| match item {
            Item::Struct(state) if changed.0.contains(&state.ident) => of_state(state),
            // Those of law/types.h.
            Item::Type(name) if integer(&name.ident.to_string()).is_some() => vec![],
            other => vec![other],
        })
        .collect();
    let types = file.items.iter().filter_map(|item| match item {
        Item::Struct(item) => Some(item.ident.clone()),
        Item::Enum(item) => Some(item.ident.clone()),
        _ => None,
    });
    Names(types.collect()).visit_file_mut(&mut file);
    prettyplease::unparse(&file)
}

/// Makes pointers of functions references, and the functions safe; collects the structures that functions change.
#[derive(Default)]
struct Changed(BTreeSet<Ident>);

impl VisitMut for Changed {
    fn visit_foreign_item_mut(&mut self, item: &mut ForeignItem) {
        let ForeignItem::Fn(function) = item else {
            return;
        };
        function.sig.safety = Safety::Safe(parse_quote!(safe));
        for input in &mut function.sig.inputs {
            let FnArg::Typed(argument) = input else {
                continue;
            };
            let Type::Ptr(pointer) = &*argument.ty else {
                continue;
            };
            let to = pointer.elem.clone();
            *argument.ty = match pointer.mutability {
                syn::PointerMutability::Mut(_) => {
                    if let Type::Path(path) = &*to {
                        self.0.extend(path.path.get_ident().cloned());
                    }
                    parse_quote!(&mut #to)
                }
                syn::PointerMutability::Const(_) => parse_quote!(&#to),
            };
        }
    }
}

/// Its fields for this module, and a function that reads each number.
fn of_state(mut state: ItemStruct) -> Vec<Item> {
    let Fields::Named(fields) = &mut state.fields else {
        panic!("a structure of C has named fields");
    };
    let mut readers: Vec<syn::ImplItem> = vec![];
    for field in &mut fields.named {
        field.vis = Visibility::Inherited;
        let (name, kind, docs) = (&field.ident, &field.ty, &field.attrs);
        if matches!(kind, Type::Path(_)) {
            readers.push(parse_quote! {
                #(#docs)*
                #[inline]
                pub fn #name(&self) -> #kind {
                    self.#name
                }
            });
        }
    }
    let name = &state.ident;
    let readers = parse_quote! { impl #name { #(#readers)* } };
    vec![Item::Struct(state), readers]
}

/// Gives all items names of Rust: `onr_timely_cfg` is `TimelyCfg`, `onr_timely_sample` is `timely_sample`, `u64_` is `u64`.
struct Names(BTreeSet<Ident>);

impl Names {
    /// The name in Rust, if it is another one.
    fn of(&self, name: &str) -> Option<String> {
        let words = name.strip_prefix("onr_");
        let is_type = self.0.iter().any(|known| known == name);
        integer(name).map(str::to_owned).or_else(|| {
            words.map(|words| {
                if is_type {
                    camel(words)
                } else {
                    words.to_owned()
                }
            })
        })
    }
}

impl VisitMut for Names {
    fn visit_ident_mut(&mut self, ident: &mut Ident) {
        if let Some(name) = self.of(&ident.to_string()) {
            *ident = Ident::new(&name, ident.span());
        }
    }

    /// `offset_of!(onr_timely_cfg, delta)`, in the assertions that Rust's layout is C's.
    fn visit_macro_mut(&mut self, call: &mut syn::Macro) {
        let text = call.tokens.to_string();
        let words = text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_');
        let renamed = words.map(|word| {
            let name = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
            match self.of(name) {
                Some(new) => new + &word[name.len()..],
                None => word.to_owned(),
            }
        });
        call.tokens = renamed
            .collect::<String>()
            .parse()
            .expect("other names are tokens, too");
    }

    fn visit_variant_mut(&mut self, variant: &mut syn::Variant) {
        visit_mut::visit_variant_mut(self, variant);
        // The type's name begins as ONR_RAPID_ does.
        let words = variant.ident.to_string().to_lowercase();
        let own = words.splitn(3, '_').last().expect("it has a word");
        variant.ident = Ident::new(&camel(own), variant.ident.span());
    }
}

/// A type of law/types.h in Rust. bindgen appends a line to names that Rust has, too.
fn integer(name: &str) -> Option<&'static str> {
    match name {
        "u32_" => Some("u32"),
        "s32" => Some("i32"),
        "u64_" => Some("u64"),
        "s64" => Some("i64"),
        _ => None,
    }
}

fn camel(words: &str) -> String {
    words.split('_').map(super::capitalised).collect()
}
