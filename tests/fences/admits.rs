//! Finds callers of the limiter's `admit`, by parsing a crate's method calls.
//!
//! The limiter's own `admit` takes a request alone; the guard's takes an attempt and a budget, too. Tests
//! and the inside of macros are left out.

use std::path::{Path, PathBuf};

use syn::{
    Expr, ExprMethodCall, ImplItemFn, ItemFn, ItemMod,
    visit::{self, Visit},
};

use crate::circles::is_test;

/// The calls of the limiter below a folder: the file and the method.
pub(crate) fn admissions(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(admissions(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.extend(in_text(&text).into_iter().map(|method| (path.clone(), method)));
        }
    }
    found
}

/// The calls of the limiter in a file.
pub(crate) fn in_text(text: &str) -> Vec<String> {
    let mut calls = Calls(Vec::new());
    calls.visit_file(&syn::parse_file(text).unwrap());
    calls.0
}

struct Calls(Vec<String>);

impl<'ast> Visit<'ast> for Calls {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let (method, arguments) = (call.method.to_string(), call.args.len());
        let is_of_the_limiter = match method.as_str() {
            "admit_until" | "admit_patiently" => true,
            "admit" => arguments == 1,
            "run" => arguments == 2 && is_quota(&call.receiver),
            _ => false,
        };
        if is_of_the_limiter {
            self.0.push(method);
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// Whether the receiver is named `quota`, as a variable or as a field.
fn is_quota(receiver: &Expr) -> bool {
    match receiver {
        Expr::Path(path) => path.path.is_ident("quota"),
        Expr::Field(field) => {
            matches!(&field.member, syn::Member::Named(name) if name == "quota")
        }
        _ => false,
    }
}
