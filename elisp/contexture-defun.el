;;; contexture-defun.el --- The definition around point  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-defun-at-point' finds what a programmer calls a definition:
;; with its decorators, attributes and documentation comment, its name and
;; its kind.  A tree-sitter parser knows best where a definition is; else
;; the major mode, if it has rules of its own; else a line that looks like
;; the head of a definition, with the lines indented below it.  In Org and
;; Markdown it is a source block or the section with its heading, and in
;; code that is divided by "# %%" the cell.

;;; Code:

(require 'cl-lib)
(require 'contexture-defun-prose)
(require 'rx)
(eval-when-compile (require 'subr-x))

(declare-function add-log-current-defun "add-log" ())
(declare-function treesit-defun-at-point "ext:treesit" ())
(declare-function treesit-node-children "ext:treesit" (node &optional named))
(declare-function treesit-node-end "ext:treesit.c" (node))
(declare-function treesit-node-parent "ext:treesit.c" (node))
(declare-function treesit-node-start "ext:treesit.c" (node))
(declare-function treesit-node-type "ext:treesit.c" (node))
(declare-function treesit-parent-until "ext:treesit" (node pred &optional include-node))
(declare-function treesit-parser-list "ext:treesit.c" (&optional buffer language tag))

;;;; Heads

(defconst contexture-defun--modifiers
  (rx (* (or (seq (or "export" "default" "public" "private" "protected" "internal"
                      "static" "final" "abstract" "async" "unsafe" "const" "virtual"
                      "inline" "override" "open" "sealed" "data" "partial" "declare"
                      "synchronized" "native" "constexpr" "explicit" "friend" "local"
                      "readonly" "typedef")
                  symbol-end)
             (seq "extern" (? (+ blank) "\"" (* (not (any "\""))) "\""))
             (seq "pub" (? "(" (* (not (any ")\n"))) ")"))
             (seq "template" (* blank) "<" (* (not (any ">\n"))) ">"))
         (+ blank)))
  "Regexp for the words that may come before the keyword of a definition.")

(defconst contexture-defun--name
  (rx (? (any "#~*")) (any alpha "_$") (* (any alnum "_$?!")) (* (or "::" "." ":")
                                                                 (any alpha "_$")
                                                                 (* (any alnum "_$?!"))))
  "Regexp for a name.")

(defconst contexture-defun--keyword-kinds
  '(("def" . :function) ("defp" . :function) ("fn" . :function) ("func" . :function)
    ("fun" . :function) ("function" . :function) ("sub" . :function)
    ("proc" . :function) ("procedure" . :function)
    ("class" . :class) ("object" . :class) ("record" . :class) ("contract" . :class)
    ("struct" . :struct) ("union" . :struct) ("enum" . :enum)
    ("interface" . :interface) ("protocol" . :interface)
    ("trait" . :trait) ("impl" . :impl)
    ("module" . :module) ("mod" . :module) ("namespace" . :module)
    ("type" . :type) ("macro_rules!" . :macro) ("macro" . :macro))
  "Alist from a keyword that begins a definition to the definition's kind.")

(defconst contexture-defun--keyword-head
  (concat "[ \t]*" contexture-defun--modifiers
          (regexp-opt (mapcar #'car contexture-defun--keyword-kinds) "\\(")
          "\\*?\\(?:[ \t]+\\|[ \t]*<[^>\n]*>[ \t]*\\)"
          "\\(?:<[^>\n]*>[ \t]*\\|class[ \t]+\\|([^()\n]*)[ \t]*\\)?" ; Go's receiver
          "\\(" contexture-defun--name "\\)")
  "Regexp for a head with a keyword; its groups are the keyword and the name.")

(defconst contexture-defun--value-head
  (concat "[ \t]*" contexture-defun--modifiers "\\(?:\\(?:const\\|let\\|var\\)[ \t]+\\)?"
          "\\(" contexture-defun--name "\\)"
          "[ \t]*\\(?::[^=\n]*\\)?[=:][ \t]*\\(?:async[ \t]+\\)?"
          "\\(?:function\\_>\\|(.*=>\\|([ \t]*$\\|<[^>\n]*>(.*\\(?:=>\\|(\\)[ \t]*"
          "\\|[[:alpha:]_$][[:alnum:]_$]*[ \t]*=>\\)")
  "Regexp for a function that is the value of a name; its group is the name.")

(defconst contexture-defun--call-head
  (concat "[ \t]*" contexture-defun--modifiers
          "\\(?:\\(?:get\\|set\\|function\\)[ \t]+\\)?"
          "\\(?:[][:alnum:]_$<>,:.?&*[ \t]*[]>[:alnum:]_&*][ \t*&]+\\)?"
          "\\(" contexture-defun--name "\\)[ \t]*\\(?:<[^>\n]*>\\)?(")
  "Regexp for a head without keyword, such as a method's; its group is the name.")

(defconst contexture-defun--no-names
  '("if" "for" "while" "switch" "catch" "with" "return" "else" "do" "match" "foreach"
    "using" "lock" "new" "await" "throw" "typeof" "elif" "until" "unless" "case"
    "super" "sizeof" "defer" "go" "select" "loop" "assert" "function" "print")
  "Words that may precede a parenthesis without being a function's name.")

(defconst contexture-defun--lisp-head
  (rx (* blank) "(" (group (* (any alnum "_:/.-")) "def" (* (any alnum "_!*?-")))
      (+ (any " \t\n"))
      (* (or (seq "^" (+ (not (any " \n"))) (+ blank))))
      (* (any "('")) (group (+ (not (any " \t\n()\"")))))
  "Regexp for a definition in a Lisp; its groups are the operator and the name.")

(defun contexture-defun--head-here ()
  "Return (NAME . KIND) if a definition's head begins on this line, or nil."
  (save-excursion
    (save-match-data
      (let ((case-fold-search nil))
        (forward-line 0)
        (cond ((looking-at contexture-defun--lisp-head)
               (cons (match-string-no-properties 2)
                     (contexture-defun--lisp-kind (match-string 1))))
              ((looking-at contexture-defun--keyword-head)
               (contexture-defun--keyword-found))
              ((looking-at contexture-defun--value-head)
               (cons (match-string-no-properties 1) :function))
              ((looking-at contexture-defun--call-head)
               (contexture-defun--call-found)))))))

(defun contexture-defun--keyword-found ()
  "Return (NAME . KIND) of the head with a keyword that was just matched."
  (let* ((keyword (match-string 1))
         (name (match-string-no-properties 2))
         (kind (cdr (assoc keyword contexture-defun--keyword-kinds)))
         (line (buffer-substring-no-properties (point) (line-end-position))))
    (cond ((and (eq kind :impl) (string-match "[ \t]for[ \t]+\\([^ {\n]+\\)" line))
           (cons (match-string 1 line) kind))
          ((and (eq kind :type)
                (string-match "\\_<\\(struct\\|interface\\)\\_>" line))
           (cons name (intern (concat ":" (match-string 1 line)))))
          ((and (equal keyword "func") (string-match "\\`[ \t]*func[ \t]*(" line))
           (cons name :method))
          ;; "struct point p = …" and "struct point;" define no type.
          ((and (memq kind '(:struct :enum :class :module))
                (string-match-p "\\`[^{]*[;=]" line))
           nil)
          ((and (memq kind '(:struct :enum)) (string-match-p "(" line)) ; a function
           (and (looking-at contexture-defun--call-head)
                (contexture-defun--call-found)))
          (t (cons name kind)))))

(defun contexture-defun--call-found ()
  "Return (NAME . KIND) of the head without keyword that was just matched.
Nil if its parentheses are those of a call."
  (let ((name (match-string-no-properties 1))
        (line (buffer-substring-no-properties (point) (match-end 1))))
    (unless (or (member name contexture-defun--no-names)
                (string-match-p "\\_<\\(?:return\\|else\\|new\\|throw\\|await\\|case\\)\\_>"
                                line))
      (goto-char (1- (match-end 0)))
      (and (ignore-errors (forward-list) t)
           (looking-at-p "[^;{}()=,\"']*{")
           (cons name :function)))))

(defun contexture-defun--lisp-kind (operator)
  "Return the kind of what OPERATOR, the name of a macro of a Lisp, defines."
  (pcase operator
    ((rx (or "macro" "syntax")) :macro)
    ((rx "test") :test)
    ((rx (or "method" "generic" "multi")) :method)
    ((rx (or "class" "struct" "record" "type")) :class)
    ((rx "protocol") :interface)
    ((rx (or "package" "module" "library")) :module)
    ((rx (or "var" "const" "param" "custom" "face" "group" "global")) :variable)
    ((or "def" "defonce") :variable)
    (_ :function)))

;;;; What belongs to a definition, above it

(defconst contexture-defun--annotation
  (rx (* blank) (or (seq "@" (any alpha "_")) "#[" "#![" "[["
                    (seq "template" (* blank) "<")
                    (seq "[" (any upper))))
  "Regexp for the beginning of a decorator, an attribute or a template's head.")

(defconst contexture-defun--comment
  (rx (* blank) (or "//" "/*" "*/" "* " "*\n"
                    (seq "#" (or (any " #'\n") eol)) (seq (+ ";") (or (any " #\n") eol))
                    "--" "%"))
  "Regexp for a line that is a comment in most languages.")

(defun contexture-defun--comment-line-p ()
  "Return non-nil if this line is nothing but a comment."
  (save-excursion
    (forward-line 0)
    (skip-chars-forward " \t")
    (cond ((eolp) nil)
          ((looking-at-p "#!") nil)
          ((looking-at-p ";;;;? [^#]") nil) ; a heading
          ((nth 3 (syntax-ppss)) nil)
          ((nth 4 (syntax-ppss)))
          ((derived-mode-p 'prog-mode)
           (or (and comment-start-skip (looking-at-p comment-start-skip))
               (and (looking-at-p "//\\|/\\*")
                    (forward-comment 1))))
          (t (forward-line 0)
             (looking-at-p contexture-defun--comment)))))

(defun contexture-defun--annotation-start ()
  "Return where the annotation that ends on this line begins, or nil."
  (save-excursion
    (end-of-line)
    (skip-chars-backward " \t")
    (when (memq (char-before) '(?\) ?\]))
      (ignore-errors (backward-list)))
    (forward-line 0)
    (and (looking-at-p contexture-defun--annotation) (point))))

(defun contexture-defun--grow (start)
  "Return where comments and annotations directly above START begin."
  (save-excursion
    (goto-char start)
    (forward-line 0)
    (let ((start (point)))
      (while (and (zerop (forward-line -1))
                  (let ((above (or (contexture-defun--annotation-start)
                                   (and (contexture-defun--comment-line-p) (point)))))
                    (when (and above (< above start))
                      (setq start above)
                      (goto-char above)))))
      (goto-char start)
      (when (looking-at-p ";;;###") (forward-line)) ; a cookie with no comment above it
      (point))))

(defun contexture-defun--skip-preamble ()
  "Go from a comment or annotation to the definition directly below it.
Stay if there is none."
  (let ((here (point)) found)
    (forward-line 0)
    (while (and (not (eobp))
                (or (contexture-defun--comment-line-p)
                    (looking-at-p contexture-defun--annotation)))
      (setq found t)
      (if (looking-at-p contexture-defun--annotation)
          (contexture-defun--skip-annotation)
        (forward-line)))
    (if (and found (not (looking-at-p "[ \t]*$")))
        (back-to-indentation)
      (goto-char here))))

(defun contexture-defun--skip-annotation ()
  "Go to the line after the annotation that begins on this line."
  (let ((eol (line-end-position)))
    (back-to-indentation)
    (ignore-errors
      (skip-chars-forward "^([<\n")
      (unless (eolp) (forward-list)))
    (goto-char (max (point) eol))
    (if (< (point) (line-end-position)) (goto-char eol))
    (forward-line)))

;;;; By the lines' indentation

(defun contexture-defun--blank-p ()
  "Return non-nil if the indentation of this line says nothing.
Such a line is blank, a label, or a directive of C's preprocessor."
  (save-excursion
    (forward-line 0)
    (looking-at-p
     (rx (* blank)
         (or eol
             (seq (or "public" "private" "protected" "signals") (* (any " a-z")) ":"
                  (* blank) eol)
             (seq "#" (* blank) (or "if" "ifdef" "ifndef" "else" "elif" "endif" "define"
                                    "undef" "pragma" "include")
                  symbol-end))))))

(defun contexture-defun--closer-p ()
  "Return non-nil if this line begins with what closes a block."
  (save-excursion
    (back-to-indentation)
    (looking-at-p "[])}]\\|\\(?:end\\|done\\|fi\\|esac\\)\\_>")))

(defun contexture-defun--opener-p ()
  "Return non-nil if this line continues a head that began above it."
  (save-excursion
    (back-to-indentation)
    (looking-at-p "{\\|where\\_>")))

(defun contexture-defun--end-by-indentation ()
  "Return where the definition whose head begins on this line ends."
  (save-excursion
    (if (save-excursion (back-to-indentation) (eq (char-after) ?\())
        (progn (back-to-indentation)
               (ignore-errors (forward-list))
               (min (point-max) (1+ (line-end-position))))
      (let* ((depth (current-indentation))
             (end (progn (forward-line) (point))))
        (while (and (not (eobp))
                    (or (contexture-defun--blank-p)
                        (> (current-indentation) depth)
                        ;; GNU style: the brace of a function is below its head.
                        (and (= (current-indentation) depth)
                             (or (contexture-defun--closer-p)
                                 (contexture-defun--opener-p))
                             (not (contexture-defun--done-p end depth)))))
          (let ((blank (contexture-defun--blank-p)))
            (forward-line)
            (unless blank (setq end (point)))))
        end))))

(defun contexture-defun--body-p (end)
  "Return non-nil if the lines from here to END may be a definition.
Outside of a mode for programs they may be prose."
  (or (derived-mode-p 'prog-mode)
      (and (not (derived-mode-p 'text-mode))
           (or (> end (line-beginning-position 2))
               (looking-at-p ".*[]}{;][ \t]*$")))))

(defun contexture-defun--done-p (end depth)
  "Return non-nil if the line before END closes a definition at DEPTH.
A line that also opens a block, such as \") {\", does not."
  (save-excursion
    (goto-char end)
    (forward-line -1)
    (and (= (current-indentation) depth)
         (contexture-defun--closer-p)
         (not (looking-at-p ".*[[({:][ \t]*$")))))

(defun contexture-defun--by-indentation ()
  "Return the smallest definition around point that indentation shows, or nil.
It is a list of its beginning, end, name and kind."
  (save-excursion
    (let ((here (if (contexture-defun--blank-p) (point) (line-beginning-position)))
          (limit most-positive-fixnum)
          found)
      (forward-line 0)
      (while (and (contexture-defun--blank-p) (not (bobp)))
        (forward-line -1))
      (while (and (not found) (>= limit 0))
        (let ((depth (current-indentation)))
          (when (and (not (contexture-defun--blank-p))
                     (or (< depth limit)
                         ;; The lines of a head may end with a closer at its depth.
                         (and (= depth limit) (< limit most-positive-fixnum))))
            (when-let* ((head (contexture-defun--head-here))
                        (end (contexture-defun--end-by-indentation)))
              (when (and (> end here) (contexture-defun--body-p end))
                (setq found (list (point) end (car head) (cdr head)))))
            (unless found
              (setq limit (if (or (contexture-defun--closer-p)
                                  (contexture-defun--opener-p))
                              depth
                            (1- depth))))))
        (when (and (not found) (/= 0 (forward-line -1)))
          (setq limit -1)))
      found)))

;;;; By the mode

(defconst contexture-defun--treesit-p
  (and (fboundp 'treesit-defun-at-point) (fboundp 'treesit-parent-until)
       (fboundp 'treesit-parser-list) (fboundp 'treesit-node-children)
       (fboundp 'treesit-node-parent) (fboundp 'treesit-node-type)
       (fboundp 'treesit-node-start) (fboundp 'treesit-node-end))
  "Non-nil if this Emacs has tree-sitter, as Emacs 29 and later may.")

(defun contexture-defun--by-parser ()
  "Return (BEG END) of the definition that tree-sitter sees, or nil."
  (when (and contexture-defun--treesit-p (treesit-parser-list))
    (let ((node (ignore-errors (treesit-defun-at-point))))
      (while (and node (contexture-defun--plain-value-p node))
        (setq node (treesit-parent-until
                    node (lambda (it)
                           (string-match-p
                            (rx (or "function" "method" "class" "lexical") (* anything)
                                (or "declaration" "definition" "declara"))
                            (treesit-node-type it))))))
      (and node (list (treesit-node-start node) (treesit-node-end node))))))

(defun contexture-defun--plain-value-p (node)
  "Return non-nil if NODE, in a function, declares a value that is no function."
  (and (member (treesit-node-type node) '("lexical_declaration" "variable_declaration"))
       (not (member (treesit-node-type (treesit-node-parent node))
                    '("program" "export_statement")))
       (not (cl-some
             (lambda (child)
               (cl-some (lambda (it)
                          (string-match-p "function" (treesit-node-type it)))
                        (treesit-node-children child t)))
             (treesit-node-children node t)))))

(defun contexture-defun--lisp-p ()
  "Return non-nil if this buffer's mode is one of a Lisp."
  (or (derived-mode-p 'emacs-lisp-mode 'lisp-data-mode 'lisp-mode 'scheme-mode
                      'clojure-mode)))

(defun contexture-defun--by-mode ()
  "Return (BEG END) of the definition that the mode's own rules find, or nil."
  (when (or (contexture-defun--lisp-p)
            (and (local-variable-p 'beginning-of-defun-function)
                 (not (derived-mode-p 'js-mode))))
    (when-let* ((bounds (or (bounds-of-thing-at-point 'defun)
                            (contexture-defun--by-motion))))
      (save-excursion
        (goto-char (car bounds))
        (skip-chars-forward " \t\n" (cdr bounds))
        (unless (= (point) (cdr bounds))
          (list (point) (cdr bounds)))))))

(defun contexture-defun--by-motion ()
  "Return the bounds of the definition that begins before point, or nil.
`bounds-of-thing-at-point' does not find a Python class with methods,
since it goes back from the end of the class to a method."
  (let ((here (point)))
    (save-excursion
      (end-of-line)
      (when (and (ignore-errors (beginning-of-defun))
                 (not (looking-at-p "[ \t]*$")))
        (let ((start (point)))
          (ignore-errors (end-of-defun))
          (when (and (<= start (save-excursion (goto-char here) (line-end-position)))
                     (< here (point)))
            (cons start (point))))))))

(defun contexture-defun--mode-name ()
  "Return the name that the mode has for the definition around point, or nil."
  (require 'add-log)
  (when-let* ((name (ignore-errors (add-log-current-defun))))
    (substring-no-properties name)))

;;;; The definition

(defconst contexture-defun--containers
  '(:class :struct :interface :trait :impl :enum :module)
  "Kinds of definitions whose names go before those inside.")

;;;###autoload
(defun contexture-defun-at-point ()
  "Return the definition around point as a plist, or nil if there is none.
Its keys are :beg and :end, its bounds; :name, a string or nil; and
:kind, such as `:function', `:method', `:class', `:section' or `:block'."
  (save-excursion
    (save-match-data
      (pcase (if (contexture-defun-prose--here-p)
                 (contexture-defun-prose--at-point)
               (or (contexture-defun--in-code) (contexture-defun-prose--cell)))
        (`(,beg ,end ,name ,kind)
         (list :beg beg :end end :name name :kind kind))))))

(defun contexture-defun--in-code ()
  "Return the definition around point as (BEG END NAME KIND), or nil."
  (contexture-defun--skip-preamble)
  (let* ((shown (unless (contexture-defun--lisp-p)
                  (contexture-defun--by-indentation)))
         (known (or (contexture-defun--by-parser) (contexture-defun--by-mode)))
         ;; Modes overlook functions that are values, and methods in some languages.
         (bounds (if (or (null known)
                         (and shown (> (nth 0 shown) (nth 0 known))
                              (<= (nth 1 shown) (1+ (nth 1 known)))))
                     shown
                   known)))
    (when bounds
      (contexture-defun--describe (nth 0 bounds) (nth 1 bounds) shown))))

(defun contexture-defun--describe (beg end shown)
  "Return the definition from BEG to END with its name and kind.
SHOWN is the value of `contexture-defun--by-indentation' there."
  (let* ((head (contexture-defun--first-line beg end))
         (here (or (save-excursion (goto-char head) (contexture-defun--head-here))
                   (and shown (= (nth 0 shown) (line-beginning-position))
                        (nthcdr 2 shown))))
         (outer (contexture-defun--outer head))
         (kind (or (cdr here) :definition)))
    (list (contexture-defun--grow beg)
          (save-excursion
            (goto-char end)
            (if (bolp) end (min (point-max) (1+ (line-end-position)))))
          (if (car here)
              (contexture-defun--full-name (car here) outer)
            (save-excursion
              (goto-char head)
              (back-to-indentation)
              (contexture-defun--mode-name)))
          (if (and (eq kind :function) (not (eq (nth 3 outer) :module))
                   (memq (nth 3 outer) contexture-defun--containers))
              :method
            kind))))

(defun contexture-defun--first-line (beg end)
  "Return the first line from BEG to END that is no comment or annotation."
  (save-excursion
    (goto-char beg)
    (forward-line 0)
    (let ((start (point)))
      (contexture-defun--skip-preamble)
      (if (< (point) end) (line-beginning-position) start))))

(defun contexture-defun--outer (head)
  "Return the definition that indentation shows around the line at HEAD."
  (save-excursion
    (goto-char head)
    (let ((depth (current-indentation)))
      (when (> depth 0)
        (while (and (zerop (forward-line -1))
                    (or (contexture-defun--blank-p)
                        (>= (current-indentation) depth))))
        (contexture-defun--by-indentation)))))

(defun contexture-defun--full-name (name outer)
  "Return NAME with the names of what is around it, as in \"Class.method\".
OUTER is the definition around it."
  (if (memq (nth 3 outer) contexture-defun--containers)
      (concat (save-excursion
                (goto-char (nth 0 outer))
                (contexture-defun--full-name
                 (nth 2 outer) (contexture-defun--outer (point))))
              "." name)
    name))

(provide 'contexture-defun)
;;; contexture-defun.el ends here
