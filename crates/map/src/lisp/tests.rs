//! Tests of the reader of Lisp.

use super::*;
use crate::facts::{FileFacts, FileState};
use crate::words::Splitter;

/// The definitions of a text as `line name: signature`, those of the project's forms with `?`.
#[track_caller]
fn check(path: &str, text: &str, expected: &[&str]) {
    let facts = FileFacts::of(path, text.as_bytes(), &mut Splitter::default());
    let shown: Vec<String> = facts
        .definitions
        .iter()
        .filter(|it| it.form.is_none())
        .map(|it| format!("{} {}: {}", it.line, it.name, it.signature))
        .collect();
    assert_eq!(shown, expected, "{text}");
}

#[track_caller]
fn refers(path: &str, text: &str, names: &[&str]) {
    let facts = FileFacts::of(path, text.as_bytes(), &mut Splitter::default());
    for name in names {
        assert!(facts.references.contains_key(*name), "{name}: {:?}", facts.references);
    }
}

#[test]
fn emacs_lisp_defines_by_many_heads() {
    check(
        "a.el",
        "(defun a-one (x &optional y)\n  \"Doc (\" x)\n\
         (cl-defmethod a-two ((it string) &rest more) it)\n\
         (cl-defstruct (a-three (:constructor nil)) field)\n\
         (defvar a-four \"secret\")\n\
         (define-minor-mode a-five-mode \"Doc.\" :lighter \" x\")\n\
         (defalias 'a-six #'a-one)\n\
         (with-eval-after-load 'x (defun a-seven () ?\\( ?\") )\n\
         (ert-deftest a-eight () (should t))\n\
         (cl-defmethod (setf a-nine) (value it) it)\n\
         (provide 'a)\n",
        &[
            "1 a-one: (defun a-one (x &optional y)",
            "3 a-two: (cl-defmethod a-two ((it string) &rest more)",
            "4 a-three: (cl-defstruct (a-three (:constructor nil))",
            "5 a-four: (defvar a-four",
            "6 a-five-mode: (define-minor-mode a-five-mode",
            "7 a-six: (defalias 'a-six",
            "8 a-seven: (defun a-seven ()",
            "9 a-eight: (ert-deftest a-eight ()",
            "10 a-nine: (cl-defmethod (setf a-nine) (value it)",
            "11 a: (provide 'a",
        ],
    );
}

#[test]
fn common_lisp_has_packages_characters_and_comments() {
    check(
        "a.lisp",
        "#| (defun no () |# (in-package :x)\n\
         (asdf:defsystem \"sys\" :depends-on (\"a\"))\n\
         (defpackage #:pack (:use :cl))\n\
         (defmethod draw :around ((s square) (p pane)) #\\( #\\Space)\n\
         #+sbcl (defun only-there (x) x)\n\
         (defparameter *all* '(1 2))\n\
         (define-condition oops (error) ())\n",
        &[
            "2 sys: (asdf:defsystem \"sys\"",
            "3 pack: (defpackage #:pack",
            "4 draw: (defmethod draw :around ((s square) (p pane))",
            "5 only-there: (defun only-there (x)",
            "6 *all*: (defparameter *all*",
            "7 oops: (define-condition oops (error)",
        ],
    );
}

#[test]
fn scheme_and_clojure_define_as_well() {
    check(
        "a.scm",
        "(define (one x . y) (define (inner) 1) x)\n(define two 2)\n\
         (define-record-type <point> (make-point x) point?)\n(define ((curried a) b) a)\n\
         #;(define (gone) 1)\n",
        &[
            "1 one: (define (one x . y)",
            "2 two: (define two",
            "3 <point>: (define-record-type <point> (make-point x)",
            "4 curried: (define ((curried a) b)",
            "5 gone: (define (gone)",
        ],
    );
    check(
        "a.clj",
        "(ns ^{:doc \"x\"} my.space (:require [other.thing :as t]))\n\
         (defn ^:private one \"Doc.\" [a {:keys [b]}] \\( #\"re(\")\n\
         (defmulti two :kind)\n(defrecord Three [x y])\n(def ^{:a 1} four 4)\n",
        &[
            "1 my.space: (ns ^{:doc \"x\"} my.space",
            "2 one: (defn ^:private one \"Doc.\" [a {:keys [b]}]",
            "3 two: (defmulti two",
            "4 Three: (defrecord Three [x y]",
            "5 four: (def ^{:a 1} four",
        ],
    );
}

#[test]
fn macros_that_write_definitions_are_definers() {
    let text = "(defmacro my-register (name &rest body)\n  `(progn (defun ,name () ,@body)))\n\
                (defmacro plain (x) `(list ,x))\n(my-register thing 1)\n(message \"x\")\n";
    let found = read(Language::EmacsLisp, text);
    assert_eq!(found.definers, ["my-register"]);
    let of_forms: Vec<_> = found
        .definitions
        .iter()
        .filter_map(|it| Some((it.form.as_deref()?, it.name.as_str(), it.line)))
        .collect();
    assert!(of_forms.contains(&("my-register", "thing", 4)), "{of_forms:?}");
}

#[test]
fn references_go_through_quotes_and_packages() {
    refers("a.el", "(mapc #'one (list 'two `(,three)))", &["one", "two", "three", "mapc"]);
    refers("a.lisp", "(pkg::four (sys:five) #'(setf six))", &["four", "five", "six", "pkg"]);
    refers("a.clj", "(str/join @atom ~x #(seven %))", &["join", "str", "seven", "atom"]);
}

#[test]
fn texts_that_are_not_balanced_give_what_can_be_read() {
    check(
        "a.el",
        "(defun one (\n(defun two () 1)\n",
        &["1 one: (defun one", "2 two: (defun two ()"],
    );
    check("a.el", "))) (defun one () 1", &["1 one: (defun one ()"]);
    for text in
        ["\"", "#|", "?\\", "#\\", "(", "'", "#", "^", "\\", "|", "(defun", "(defun \"", "#+("]
    {
        for path in ["a.el", "a.lisp", "a.scm", "a.clj"] {
            let facts = FileFacts::of(path, text.as_bytes(), &mut Splitter::default());
            assert_eq!(facts.state, FileState::Whole);
        }
    }
    let deep = "(".repeat(100_000) + "(defun x () 1)";
    let _ = read(Language::EmacsLisp, &deep);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(text in "([()\\[\\]{}'`,#|\";?\\\\^:~@ \n]|def|x|é|un){0,60}") {
        for path in ["a.el", "a.lisp", "a.scm", "a.clj"] {
            FileFacts::of(path, text.as_bytes(), &mut Splitter::default());
        }
    }
}
