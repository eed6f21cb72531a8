;;; contexture-defun-tests.el --- What a definition is, mode by mode  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A table of modes and shapes.  In each text, ¦ is point, and « and » are
;; the bounds of the definition.  A mode that this Emacs does not have, or
;; a grammar, is a test that is skipped.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-code)

(dolist (folder (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa/*-mode-[0-9]*"))
  (add-to-list 'load-path folder))

(defvar python-indent-guess-indent-offset-verbose)
(defvar treesit-font-lock-level)

(defun contexture-defun-tests--available-p (mode)
  "Whether this Emacs has MODE, with its grammar if it needs one."
  (let ((library (pcase mode
                   ('clojure-mode 'clojure-mode) ('go-mode 'go-mode)
                   ('rust-mode 'rust-mode) ('markdown-mode 'markdown-mode)
                   ((or 'typescript-ts-mode 'tsx-ts-mode) 'typescript-ts-mode)
                   ((or 'go-ts-mode 'rust-ts-mode 'java-ts-mode 'ruby-ts-mode) mode)
                   ('c++-ts-mode 'c-ts-mode) ('c-ts-mode 'c-ts-mode)))
        (language (pcase mode
                    ('c++-ts-mode 'cpp) ('js-ts-mode 'javascript)
                    (_ (intern (replace-regexp-in-string "-ts-mode\\'" ""
                                                         (symbol-name mode)))))))
    (and (or (null library) (require library nil t))
         (fboundp mode)
         (or (not (string-suffix-p "-ts-mode" (symbol-name mode)))
             (and (fboundp 'treesit-language-available-p)
                  (funcall 'treesit-language-available-p language))))))

(defun contexture-defun-tests--check (mode file text name kind)
  "Check the definition in TEXT, that of a FILE in MODE: its NAME and KIND."
  (with-temp-buffer
    (let (point beg end (python-indent-guess-indent-offset-verbose nil))
      (insert text)
      (pcase-dolist (`(,mark . ,set) `(("¦" . ,(lambda () (setq point (point-marker))))
                                       ("«" . ,(lambda () (setq beg (point-marker))))
                                       ("»" . ,(lambda () (setq end (point-marker))))))
        (goto-char (point-min))
        (when (search-forward mark nil t)
          (delete-char -1)
          (funcall set)))
      (setq buffer-file-name (concat "/nowhere/" file))
      (let ((inhibit-message t) (delay-mode-hooks t)) (funcall mode))
      (goto-char point)
      (let ((found (contexture-defun-at-point)))
        (set-buffer-modified-p nil)
        (should (equal (list text
                             (and found (string-trim-right
                                         (buffer-substring-no-properties
                                          (plist-get found :beg) (plist-get found :end))))
                             (plist-get found :name) (plist-get found :kind))
                       (list text
                             (and beg (string-trim-right
                                       (buffer-substring-no-properties beg end)))
                             name kind)))))))

(defmacro contexture-defun-tests--table (language file modes &rest rows)
  "Define a test of LANGUAGE, in a FILE, for each of MODES.
Each of ROWS is a text, a name and a kind; see the commentary."
  (declare (indent 3))
  `(progn
     ,@(mapcar
        (lambda (mode)
          `(ert-deftest ,(intern (format "contexture-defun-of-%s-in-%s" language mode)) ()
             (skip-unless (contexture-defun-tests--available-p ',mode))
             (pcase-dolist (`(,text ,name ,kind) ',rows)
               (contexture-defun-tests--check ',mode ,file text name kind))))
        modes)))

(contexture-defun-tests--table emacs-lisp "a.el"
    (emacs-lisp-mode fundamental-mode)
  (";;; a.el\n\n«;; Doubles.\n;;;###autoload\n(defun my-two (x)\n  \"Say.\"\n  (* 2¦ x))\n»\n(defvar b 1)\n"
   "my-two" :function)
  ("(defun a ()\n  1)\n\n«;; Of¦ b.\n(defmacro b (x)\n  x)\n»" "b" :macro)
  ("«(cl-defmethod¦ area ((s list))\n  s)\n»\n(defun a ())\n" "area" :method)
  (";;;###autoload\n«(defun my-one ()\n  1¦)\n»" "my-one" :function)
  ("«(defvar my-x\n  ¦1)\n»" "my-x" :variable)
  ("«(ert-deftest t-one ()\n  (should¦ t))\n»" "t-one" :test)
  ("(defun a ()\n  1)\n\n¦\n\n;;;; Next\n" nil nil))

(contexture-defun-tests--table common-lisp "a.lisp"
    (lisp-mode fundamental-mode)
  ("(in-package :a)\n\n«;; Sums.\n(defun total (xs)\n  \"Sum.\"\n  (reduce¦ #'+ xs))\n»\n(defvar *x* 1)\n"
   "total" :function)
  ("«(defmethod area ((s list))\n  (apply¦ #'* s))\n»" "area" :method)
  ("«(defclass shape ()\n  ((x :initform¦ 1)))\n»" "shape" :class))

(contexture-defun-tests--table scheme "a.scm"
    (scheme-mode fundamental-mode)
  ("(define a 1)\n\n«; Squares.\n(define (square x)\n  (* x¦ x))\n»\n(define b 2)\n"
   "square" :function)
  ("«(define-syntax swap\n  (syntax-rules¦ ()\n    ((_ a b) a)))\n»" "swap" :macro))

(contexture-defun-tests--table clojure "a.clj"
    (clojure-mode fundamental-mode)
  ("(ns app.core)\n\n«;; Greets.\n(defn greet\n  \"Says.\"\n  [name]\n  (str¦ name))\n»\n(def x 1)\n"
   "greet" :function)
  ("«(defprotocol Shape\n  (area¦ [s]))\n»" "Shape" :interface)
  ("«(defmacro unless [c & body]\n  `(if ~c¦ nil))\n»" "unless" :macro))

(contexture-defun-tests--table rust "a.rs"
    (rust-mode rust-ts-mode fundamental-mode)
  ("use std::fmt;\n\n«/// Adds.\n#[inline]\npub fn add(a: i32, b: i32) -> i32 {\n    a + b¦\n}\n»\nfn other() {}\n"
   "add" :function)
  ("«/// A point.\n#[derive(\n    Debug,\n)]\npub struct Point {\n    x: i32,¦\n}\n»\nfn f() {}\n"
   "Point" :struct)
  ("impl Point {\n    const A: i32 = 1;\n\n«    /// Doc.¦\n    pub async fn len(\n        &self,\n    ) -> i32 {\n        if self.x > 0 {\n            1\n        } else {\n            2\n        }\n    }\n»\n    fn b() {}\n}\n"
   "Point.len" :method)
  ("impl Point {\n«    fn len(\n        &self,\n    ) -> i32 {\n        let f = |a: i32| {\n            a + 1¦\n        };\n        f(1)\n    }\n»\n    fn b() {}\n}\n"
   "Point.len" :method)
  ("fn a() {}\n\n«impl fmt::Display¦ for Point {\n    fn b() {}\n}\n»" "Point" :impl)
  ("//! Says;¦ and does.\n\nuse std::fmt;\n\nfn a() {\n    1\n}\n" nil nil)
  ("use std::fmt;¦\n\nfn a() {\n    1\n}\n" nil nil)
  ("fn b() {}\n\n#[doc(hidden)]\npub mod c;¦\n\nfn a() {\n    1\n}\n" nil nil)
  ("/// One.\nstatic A: [u8; 2] = [1, 2];¦\n\nfn a() {\n    1\n}\n" nil nil)
  ("«type A = Vec<u8>;¦\n»\nfn a() {\n    1\n}\n" "A" :type)
  ("«/// Two.\npub(crate) struct Pair(u8, u8);¦\n»\nfn a() {\n    1\n}\n" "Pair" :struct)
  ("«fn a(b: [u8; 2]) -> [u8; 2] {\n    b¦\n}\n»" "a" :function))

(contexture-defun-tests--table python "a.py"
    (python-mode python-ts-mode fundamental-mode)
  ("import os\n\n«# Gets.\n@cache(\n    size=1,\n)\n@other\nasync def get(a,\n              b):\n    \"\"\"Say.\"\"\"\n\n    return¦ a\n»\nx = 1\n"
   "get" :function)
  ("class A:\n    one = 1\n\n«    @property\n    def f(self):\n        if a:\n            return¦ 1\n»\n    def g(self):\n        return 2\n"
   "A.f" :method)
  ("class A:\n    def f(self):\n        return 1\n\n«    @property¦\n    def g(self):\n        return 2\n»"
   "A.g" :method)
  ("x = 1\n\n«@dataclass\nclass A(B):\n    one¦: int = 1\n\n    def f(self):\n        return 1\n»\ny = 2\n"
   "A" :class)
  ("x = 1\n«# %% Load\ny = ¦2\n\n»# %%\nz = 3\n" "Load" :block))

(contexture-defun-tests--table javascript "a.js"
    (js-mode js-ts-mode fundamental-mode)
  ("import a from 'a';\n\n«/**\n * Adds.\n */\nexport async function add(a, b) {\n  return¦ a + b;\n}\n»\nconst x = 1;\n"
   "add" :function)
  ("let y = 1;\n\n«// Sends.\nexport const send = async (a) => {\n  const b = 1;\n  if (a) {\n    go(b¦);\n  }\n};\n»\nadd(1, 2);\n"
   "send" :function)
  ("class Shape extends Base {\n  constructor() {\n    super();\n  }\n\n«  // Area.\n  async area(x) {\n    for (const a of b) {\n      go(a¦);\n    }\n    return 1;\n  }\n»\n  other() {}\n}\n"
   "Shape.area" :method)
  ("let a = 1;\n\n«export default class Shape {\n  x =¦ 1;\n\n  area() {\n    return 1;\n  }\n}\n»\nlet b = 2;\n"
   "Shape" :class))

(contexture-defun-tests--table typescript "a.ts"
    (typescript-ts-mode fundamental-mode)
  ("«/** Adds. */\nexport function add<T>(a: T, b: T): T {\n  return¦ a;\n}\n»\nconst x = 1;\n"
   "add" :function)
  ("«const send = async (\n  a: string,\n): Promise<void> => {\n  const b = 1;\n  await go(b¦);\n};\n»\nadd(1);\n"
   "send" :function)
  ("@Component({\n  a: 1,\n})\nclass Shape {\n«  @Input()\n  public async area(x: number): Promise<number> {\n    return¦ x;\n  }\n»\n  b() {}\n}\n"
   "Shape.area" :method)
  ("let y = 1;\n\n«@Component({\n  a: 1,\n})\nexport class Shape {\n  x =¦ 1;\n\n  b() {}\n}\n»\nlet z = 1;\n"
   "Shape" :class)
  ("let y = 1;\n\n«export interface Named {\n  name¦: string;\n}\n»\nlet z = 1;\n" "Named" :interface))

(contexture-defun-tests--table tsx "a.tsx"
    (tsx-ts-mode fundamental-mode)
  ("import a from 'a';\n\n«// Shows.\nexport const View = ({ a }: Props) => {\n  const b = 1;\n  return (\n    <div>\n      {a¦}\n    </div>\n  );\n};\n»\nexport default View;\n"
   "View" :function)
  ("«export default function App() {\n  return <View¦ a={1} />;\n}\n»" "App" :function))

(contexture-defun-tests--table go "a.go"
    (go-mode go-ts-mode fundamental-mode)
  ("package a\n\n«// Add adds.\nfunc Add(a int, b int) int {\n\treturn¦ a + b\n}\n»\nvar x = 1\n"
   "Add" :function)
  ("package a\n\n«// Len says.\nfunc (p *Point) Len() int {\n\tif p == nil {\n\t\treturn¦ 0\n\t}\n\treturn 1\n}\n»\nfunc B() {}\n"
   "Len" :method)
  ("package a\n\n«// Point is.\ntype Point struct {\n\tX¦ int\n}\n»\nfunc B() {}\n" "Point" :struct))

(contexture-defun-tests--table c "a.c"
    (c-mode c-ts-mode fundamental-mode)
  ("#include <a.h>\n\n«/* Adds\n * two. */\nstatic int add(int a, int b)\n{\n    if (a) {\n        return¦ 1;\n    }\n    return a + b;\n}\n»\nint x;\n"
   "add" :function)
  ("«// Runs.\nint main(int argc, char **argv) {\n    return¦ 0;\n}\n»\nint y;\n" "main" :function)
  ("int y;\n\n«/* A point. */\nstruct point {\n    int x¦;\n};\n»\nint z;\n" "point" :struct))

(contexture-defun-tests--table c++ "a.cc"
    (c++-mode c++-ts-mode fundamental-mode)
  ("int y;\n\n«/// Largest.\ntemplate <typename T>\n[[nodiscard]]\nT largest(T a, T b) {\n    return¦ a;\n}\n»\nint z;\n"
   "largest" :function)
  ("class Shape {\npublic:\n«    // Area.\n    virtual int area() const {\n        return¦ 1;\n    }\n»\n    int b() { return 1; }\n};\n"
   "Shape.area" :method)
  ("int y;\n\n«int Shape::width(int a) const {\n    return¦ a;\n}\n»" "Shape::width" :function))

(contexture-defun-tests--table java "A.java"
    (java-mode java-ts-mode fundamental-mode)
  ("package a;\n\npublic class Shape {\n    int x = 1;\n\n«    /**\n     * Area.\n     */\n    @Override\n    public int area(int a) throws E {\n        for (int i : b) {\n            go(i¦);\n        }\n        return 1;\n    }\n»\n    void b() {}\n}\n"
   "Shape.area" :method)
  ("package a;\n\n«/** A shape. */\n@Entity\npublic class Shape {\n    int x¦ = 1;\n\n    void b() {\n    }\n}\n»" "Shape" :class))

(contexture-defun-tests--table ruby "a.rb"
    (ruby-mode ruby-ts-mode fundamental-mode)
  ("require 'a'\n\n«# Adds.\ndef add(a, b)\n  if a\n    return¦ b\n  end\n  a + b\nend\n»\nx = 1\n" "add" :function)
  ("module A\n  class Shape\n    attr :x\n\n«    # Area.\n    def area\n      each do |a|\n        go(a¦)\n      end\n    end\n»\n    def b\n      1\n    end\n  end\nend\n"
   "A.Shape.area" :method))

(contexture-defun-tests--table shell "a.sh"
    (sh-mode bash-ts-mode fundamental-mode)
  ("#!/bin/bash\n# A script.\n\n«# Adds.\nadd() {\n    if true; then\n        echo¦ 1\n    fi\n}\n»\nadd 1\n" "add" :function)
  ("set -e\n\n«function sub {\n    echo¦ 2\n}\n»\nadd 1\n" "sub" :function))

(contexture-defun-tests--table org "a.org"
    (org-mode)
  ("* One\ntext\n«** Two\nSome¦ text.\n*** Three\nmore\n»** Four\n" "Two" :section)
  ("* One\n«#+name: sum\n#+begin_src python\n,* 1\nx =¦ 1\n#+end_src\n»after\n" "sum" :block)
  ("* One\n«#+BEGIN_SRC emacs-lisp :tangle no\n(foo¦)\n#+END_SRC\n»after\n" "emacs-lisp" :block)
  ("«* TODO [#A] Fix¦ it :home:\n#+begin_src sh\nls\n#+end_src\n»" "Fix it" :section)
  ("* One\n#+begin_quote\n«#+caption: A list\n#+name: list\n#+begin_src sh\nls¦\n#+end_src\n»#+end_quote\n"
   "list" :block)
  ("* One\n«#+begin_quote\nSaid¦ so.\n#+end_quote\n»\nafter\n" nil :block)
  ("«* One\n#+begin_src sh\nls\n#+end_src\n¦\nafter\n»" "One" :section)
  ("* One\n#+begin_src sh\n«* no block¦\n#+end_src\n»" "no block" :section)
  ("text ¦before\n* One\n" nil nil))

(contexture-defun-tests--table markdown "a.md"
    (markdown-mode fundamental-mode)
  ("# One\ntext\n\n«## Two\nSome¦ text.\n\n```sh\n# no heading\n```\n\n### Three\nmore\n\n»## Four\n"
   "Two" :section)
  ("«# One\ntext¦\n\n~~~\n```\n~~~\n\n```sh\n# none\n~~~\n```\n»# Two\n" "One" :section)
  ("«# One\n\n```sh\n# no heading\necho¦\n»" "One" :section)
  ("«# One\n```x```\ntext¦\n\n»# Two\n```x```\n" "One" :section)
  ("# One\n\n«```python\nx =¦ 1\n```\n»\nafter\n" "python" :block)
  ("text ¦before\n\n# One\n" nil nil))

(contexture-defun-tests--table prose "a.txt"
    (text-mode fundamental-mode)
  ("class struggles¦ of the past\nand of today\n" nil nil)
  ("object of¦ this letter (it is long)\n\nother\n" nil nil))

(contexture-defun-tests--table r-markdown "a.Rmd"
    (fundamental-mode)
  ("# One\n\n«```{r plot}\nx <-¦ 1\n```\n»\nafter\n" "r" :block))

(ert-deftest contexture-add-defun-keeps-name-and-kind ()
  (contexture-test-with-server
    (contexture-test-visiting
        (contexture-test-file "a.py" "class A:" "    # Says." "    @property"
                              "    def f(self):" "        return 1")
      (goto-char (point-max))
      (forward-line -1)
      (contexture-add-defun)
      (should (equal (contexture-test-metadata (contexture-test-only-item)
                                               :origin :symbol :symbol-kind
                                               :start-line :end-line)
                     '(:defun "A.f" :method 2 5))))))

(ert-deftest contexture-defun-names-types-whatever-stands-before-and-after ()
  (pcase-dolist (`(,line . ,head)
                 '(("pub(crate) struct Failure {" "Failure" . :struct)
                   ("pub(in crate::rpc) enum Failure {" "Failure" . :enum)
                   ("pub(crate) struct Holder<F: Fn(u8)> {" "Holder" . :struct)
                   ("struct Holder<F> where F: Fn(u8) {" "Holder" . :struct)
                   ("pub(crate) struct Pair(u8, u8);" "Pair" . :struct)
                   ("pub struct Meters<T = f64>(T);" "Meters" . :struct)
                   ("struct Bytes<const N: usize = 3> {" "Bytes" . :struct)
                   ("export class Box<T = any> {" "Box" . :class)
                   ("class Shape(Base, metaclass=Meta):" "Shape" . :class)
                   ("struct point f(int a) {" "f" . :function)
                   ("static struct point *f(int a) {" "f" . :function)
                   ("struct point p(3);")
                   ("struct point p = f(3);")
                   ("struct point;")
                   ("pub mod tests;")))
    (with-temp-buffer
      (insert line "\n{\n")
      (goto-char (point-min))
      (should (equal (cons line (contexture-defun--head-here)) (cons line head))))))

;; Emacs cannot be interrupted while it matches: these took minutes.
(ert-deftest contexture-defun-long-lines-take-no-time ()
  (dolist (begin '("" "x = " "def " "template <" "(def "))
    (dolist (unit '("a" " " "a::" "a " "a*" "<" "<a>" "[" ":" "=" "(" "=>" "static " "pub(x) "
                    "extern \"" "^a " "\t"))
      (with-temp-buffer
        (insert begin (apply #'concat (make-list (/ 50000 (length unit)) unit)) "f(\n")
        (goto-char (point-min))
        (contexture-defun--head-here)
        (should-not (buffer-narrowed-p)))))
  (with-temp-buffer
    (insert "def f(" (make-string 1000 ?a) "):\n    1\n")
    (should (equal (contexture-defun--named "f") (list (cons (point-min) (point-max)))))))

;;; contexture-defun-tests.el ends here
