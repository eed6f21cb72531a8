;;; contexture-tools-lisp-real.el --- Tools in a real Lisp image  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded by contexture-tools-lisp-tests.el as contexture-lisp-real is,
;; whose SBCL it uses.

;;; Code:

(require 'contexture-lisp-real)
(require 'contexture-tools-test-helper)
(require 'contexture-tools-lisp)

(defmacro contexture-tools-lisp-real-with (&rest body)
  "Run BODY in a project, with SBCL connected."
  (declare (indent 0) (debug t))
  `(progn
     (contexture-lisp-real-connection)
     (contexture-test-in-directory (lambda () ,@body))
     (should-not contexture-tools-lisp--calls)
     (should-not (contexture-lisp-real-debugger))))

(defun contexture-tools-lisp-real-look (what name &optional package path)
  "Return what `lisp_look' tells of WHAT, NAME, PACKAGE and PATH."
  (contexture-tools-test-seen-later #'contexture-tools-lisp--look what name
                                      (or package "SHAPES") path))

(defun contexture-tools-lisp-real-evaluate (form &optional seconds)
  "Return what `lisp_evaluate' tells of FORM, with SECONDS as its limit."
  (contexture-tools-test-seen-later #'contexture-tools-lisp--evaluate form "CL-USER"
                                      seconds))

(defun contexture-tools-lisp-real-see (text &rest parts)
  "Fail unless TEXT has PARTS, regular expressions, in this order."
  (let ((case-fold-search nil) (position 0))
    (dolist (part parts)
      (ert-info ((format "%S in %s" part text))
        (should (setq position (string-match part text position))))
      (setq position (match-end 0)))))

;;;; Evaluating

(ert-deftest contexture-tools-lisp-real-evaluates ()
  (contexture-tools-lisp-real-with
    (should (equal (contexture-tools-lisp-real-evaluate
                    "(format t \"hello, wörld\") (values 1 (list :a \"b\"))")
                   "hello, wörld\n=> 1\n=> (:A \"b\")"))
    (should (equal (contexture-tools-lisp-real-evaluate "(values)") "; No values"))
    (contexture-tools-lisp-real-see
     (contexture-tools-lisp-real-evaluate
      "(defun twice (x) (* 2 x)) (trace twice) (prog1 (twice 21) (untrace twice))")
     "TWICE 21" "42" "=> 42\\'")
    (contexture-tools-lisp-real-see
     (contexture-tools-lisp-real-evaluate "(loop repeat 100000 do (print 'hello))")
     "HELLO" "(16000 of [0-9]+ characters)" "=> NIL")))

(ert-deftest contexture-tools-lisp-real-tells-conditions ()
  (contexture-tools-lisp-real-with
    (contexture-tools-lisp-real-see
     (contexture-tools-lisp-real-evaluate
      "(princ \"before\")
(restart-case (shapes::mean '(1 \"x\")) (use-zero () :report \"Use zero.\" 0))")
     "\\`before\nThe value\n  \"x\"\nis not of type\n  NUMBER" "\\[TYPE-ERROR\\]"
     "Restarts:\n" "\\[USE-ZERO\\] Use zero\\.\n" "Backtrace:\n  0: "
     "  [0-9]+: (SHAPES::MEAN (1 \"x\"))\n" "  [0-9]+: (EVAL ")
    ;; What would open a debugger or read from the user does neither.
    (contexture-tools-lisp-real-see (contexture-tools-lisp-real-evaluate "(break \"here\")")
                                    "\\`here\n" "\\[CONTINUE\\]")
    (dolist (form '("(read-line)" "(y-or-n-p \"Sure?\")" "(defun"))
      (contexture-tools-lisp-real-see (contexture-tools-lisp-real-evaluate form)
                                      "end of file"))
    (contexture-tools-lisp-real-see
     (contexture-tools-lisp-real-evaluate "(labels ((f (x) (1+ (f x)))) (f 1))")
     "stack exhausted")))

(ert-deftest contexture-tools-lisp-real-stops ()
  (contexture-tools-lisp-real-with
    (contexture-tools-lisp-real-see
     (contexture-tools-lisp-real-evaluate "(princ \"on\") (loop (sleep 0.001))" 1)
     "\\`on\nIt took longer than 1 seconds, and was stopped\\.\nBacktrace:\n" "(SLEEP \\|EVAL")
    ;; One that is cancelled frees the image, although it would catch errors.
    (let (told)
      (funcall (contexture-tools-lisp--evaluate
                (lambda (&rest result) (setq told result))
                "(loop (handler-case (sleep 0.001) (serious-condition () nil)))" "CL-USER"))
      (contexture-test-until told)
      (contexture-tools-lisp-real-see (cadr told) "\\`It was stopped\\.\nBacktrace:"))
    (should (equal (contexture-lisp-real-eval '(cl:length contexture-tools::*calls*)) 0))))

(ert-deftest contexture-tools-lisp-real-outlives-the-image ()
  (contexture-tools-lisp-real-with
    (should (equal (contexture-tools-lisp-real-evaluate "(sb-ext:exit :abort t)")
                   "The connection to the Lisp closed before it answered"))
    (contexture-lisp-real-until
     (not (contexture-lisp--connections contexture-lisp-real-client)))
    (should-error (contexture-tools-lisp--evaluate #'ignore "1" "CL-USER"))
    (contexture-lisp-real-connection)
    (should (equal (contexture-tools-lisp-real-evaluate "(+ 1 2)") "=> 3"))))

;;;; Looking up

(ert-deftest contexture-tools-lisp-real-looks-up ()
  (contexture-tools-lisp-real-with
    (let ((file (regexp-quote (concat contexture-lisp-real-file ".lisp"))))
      (pcase-dolist
          (`(,what ,name . ,parts)
           `(("describe" "total" "TOTAL" "Lambda-list: (NUMBERS)" "The sum of NUMBERS, \"λ\"")
             ("describe" "shapes" "PACKAGE \"SHAPES\"")
             ("arglist" "total" "\\`(NUMBERS)\\'")
             ("definitions" "shapes::mean" ,(concat file ":8: (DEFUN MEAN)"))
             ("definitions" "area" ,(concat file ":12: ") ,(concat file ":15: (DEFMETHOD AREA"))
             ("callers" "total" ,(concat file ":[0-9]+: MEAN\n\\'"))
             ("callees" "mean" "TOTAL")
             ("references" "total" "nothing is known")
             ("specializes" "list" "AREA")
             ("apropos" "tota" "^TOTAL: function$")
             ("disassemble" "mean" "TOTAL")
             ("macroexpand-1" "(when a (unless b c))" "\\`(if a\n *(unless b c))")
             ("macroexpand" "(when a (unless b c))" "\\`(if a")))
        (apply #'contexture-tools-lisp-real-see (contexture-tools-lisp-real-look what name)
               parts)))))

(ert-deftest contexture-tools-lisp-real-inspects-step-by-step ()
  (contexture-tools-lisp-real-with
    (contexture-tools-lisp-real-evaluate
     "(defvar *thing* (list 1 \"two\" (vector 'three 4)))")
    (let ((text (contexture-tools-lisp-real-look "inspect" "*thing*" "CL-USER")))
      (contexture-tools-lisp-real-see text "LIST\\|CONS" "\\[[0-9]+\\] \"two\"")
      (should (string-match "\\[\\([0-9]+\\)\\] #(THREE 4)" text))
      (let ((path (match-string 1 text)))
        (contexture-tools-lisp-real-see
         (contexture-tools-lisp-real-look "inspect" "*thing*" "CL-USER" path)
         "VECTOR" "\\[[0-9]+\\] THREE")))
    (contexture-tools-lisp-real-evaluate "(list 'the 'last)")
    (contexture-tools-lisp-real-see (contexture-tools-lisp-real-look "inspect" "*") "LAST")))

(ert-deftest contexture-tools-lisp-real-refuses-in-words ()
  (contexture-tools-lisp-real-with
    (pcase-dolist (`(,why . ,arguments)
                   '(("There is no symbol nothing-at-all in the package SHAPES"
                      "describe" "nothing-at-all")
                     ("There is no package nowhere" "describe" "x" "nowhere")
                     ("Nothing can be looked up by magic" "magic" "x")
                     ("unbound" "inspect" "shapes::total")
                     ("end of file" "macroexpand" "(when")))
      (contexture-tools-lisp-real-see (apply #'contexture-tools-lisp-real-look arguments) why))
    (should-error (contexture-tools-lisp-real-look "inspect" "*x*" nil "(print 1)"))))

;;;; What a model writes

(ert-deftest contexture-tools-lisp-real-runs-nothing-when-it-looks-up ()
  (contexture-tools-lisp-real-with
    (contexture-tools-lisp-real-evaluate "(defparameter *hit* nil)")
    (let ((evil "#.(setf cl-user::*hit* t)"))
      (dolist (what '("describe" "arglist" "definitions" "callers" "disassemble" "apropos"
                      "macroexpand-1" "macroexpand" "inspect"))
        (dolist (name (list evil (format "(%s)" evil) (format "(setf %s)" evil)
                            (concat "cl-user::" evil)))
          (contexture-tools-lisp-real-look what name)
          (contexture-tools-lisp-real-look what "car" name))))
    (should (equal (contexture-tools-lisp-real-evaluate "*hit*") "=> NIL"))))

(ert-deftest contexture-tools-lisp-real-takes-odd-texts ()
  (contexture-tools-lisp-real-with
    ;; What is evaluated is the text as it is.
    (should (equal (contexture-tools-lisp-real-evaluate
                    "(map 'list #'char-code \"\0\1\e\x7f\u200b\u202e😀\\\\\\\"\")")
                   "=> (0 1 27 127 8203 8238 128512 92 34)"))
    (dolist (name '("\0" "\"" "\\" "|a b|" "a\nb" "'(" "#'" ":" "::" "a:b:c" "" "\u202e"))
      (dolist (what '("describe" "apropos" "definitions" "inspect"))
        (should (stringp (contexture-tools-lisp-real-look what name)))
        (should (stringp (contexture-tools-lisp-real-look what "car" name)))))
    (should-error (contexture-tools-lisp-real-evaluate (make-string 10000000 ?x)))
    (should-error (contexture-tools-lisp-real-look "describe" (make-string 10000000 ?\()))
    (should-error (contexture-tools-lisp-real-evaluate (string ?\" #xd800 ?\")))
    (should-error (contexture-tools-lisp-real-evaluate (string ?\" #x3fff80 ?\")))
    (should (equal (contexture-tools-lisp-real-evaluate "'|alive|") "=> |alive|"))))

(provide 'contexture-tools-lisp-real)
;;; contexture-tools-lisp-real.el ends here
