;;; contexture-tools-lisp-real.el --- Tools in a real Lisp image  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded by contexture-tools-lisp-tests.el as contexture-lisp-real is,
;; whose SBCL it uses.

;;; Code:

(require 'contexture-lisp-real)
(require 'contexture-tools-test-helper)
(require 'contexture-tools)

(defmacro contexture-tools-lisp-real-with (&rest body)
  "Run BODY in a project, with SBCL connected."
  (declare (indent 0) (debug t))
  `(progn
     (contexture-lisp-real-connection)
     (contexture-test-in-directory
      (lambda () ,@body (contexture-lisp-real-settle)))
     (should-not contexture-tools-lisp--calls)
     (should-not (contexture-lisp-real-debugger))))

(defmacro contexture-tools-lisp-real-with-model (answers &rest body)
  "Run BODY with a model that says ANSWERS, in a project, with SBCL connected."
  (declare (indent 1) (debug t))
  `(progn
     (contexture-lisp-real-connection)
     (contexture-tools-test-with ,answers ,@body (contexture-lisp-real-settle))))

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
     "\\`on\nIt took longer than 1 second, and was stopped\\.\nBacktrace:\n" "(SLEEP \\|EVAL")
    ;; One that is cancelled frees the image, although it would catch errors.
    (let (told)
      (funcall (contexture-tools-lisp--evaluate
                (lambda (&rest result) (setq told result))
                "(loop (handler-case (sleep 0.001) (serious-condition () nil)))" "CL-USER"))
      (llm-ert-wait-for told)
      (contexture-tools-lisp-real-see (cadr told) "It was stopped\\.\n"))
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
             ("describe" "shapes" "PACKAGE \"SHAPES\"" "Exports: AREA")
             ("arglist" "total" "\\`(NUMBERS)\\'")
             ("definitions" "shapes::mean" ,(concat file ":8: (DEFUN MEAN)"))
             ("definitions" "area" ,(concat file ":12: ") ,(concat file ":15: (DEFMETHOD AREA"))
             ("callers" "total" ,(concat file ":[0-9]+: MEAN\n\\'"))
             ("callees" "mean" "TOTAL")
             ("references" "total" "nothing is known")
             ("specializes" "list" "AREA")
             ("apropos" "tota" "^TOTAL: function$")
             ("disassemble" "mean" "TOTAL")
             ("describe" "(setf cl:car)" "SETF")))
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
                     ("neither a symbol nor" "describe" "(when x y)")
                     ("Nothing can be looked up by macroexpand" "macroexpand" "(when x y)")
                     ("TOTALS\\|totals" "disassemble" "totals")))
      (contexture-tools-lisp-real-see (apply #'contexture-tools-lisp-real-look arguments) why))
    (should-error (contexture-tools-lisp-real-look "inspect" "*x*" nil "(print 1)"))))

;;;; Compiling and testing

(defun contexture-tools-lisp-real-tell (function &rest arguments)
  "Return what FUNCTION, a tool, tells for ARGUMENTS."
  (apply #'contexture-tools-test-seen-later function arguments))

(ert-deftest contexture-tools-lisp-real-compiles ()
  (contexture-tools-lisp-real-with
    (let ((file (contexture-test-file "odd.lisp" "(defpackage :odd (:use :cl))"
                                      "(in-package #:odd)" "(defun odd (x)"
                                      "  (+ x undefined-thing))" "(defun even (x) (list x)")))
      (let ((compile (apply-partially #'contexture-tools-lisp-real-tell
                                      #'contexture-tools-lisp--compile)))
        (contexture-tools-lisp-real-see (funcall compile "odd.lisp")
                                        "did not compile" "end of file\\|END-OF-FILE")
        (contexture-test-visiting file
          (goto-char (point-max))
          (insert ")")
          (should-error (funcall compile "odd.lisp"))
          (contexture-tools-lisp-real-evaluate "(make-package :odd)")
          (contexture-tools-lisp-real-see
           (funcall compile "odd.lisp" "odd")
           "\\`Compiled and loaded\\." "warning: undefined variable: .*UNDEFINED-THING")
          (should (equal (funcall compile "odd.lisp" "even") "Compiled and loaded."))
          (should-error (funcall compile "odd.lisp" "none"))
          (save-buffer)
          (contexture-tools-lisp-real-see (funcall compile "odd.lisp") "odd.lisp:4: warning: "))
        (should (equal (contexture-tools-lisp-real-evaluate "(odd::even 1)") "=> (1)"))
        (should (equal (funcall compile nil nil "(defun third-one () 3)" "ODD")
                       "Compiled and loaded."))
        (should (equal (contexture-tools-lisp-real-evaluate "(odd::third-one)") "=> 3"))
        (should-error (funcall compile "/etc/passwd"))
        (should-error (funcall compile nil nil "1"))))))

(defconst contexture-tools-lisp-real-system
  '(("story.asd" "(defsystem \"story\" :components ((:file \"story\"))"
     "  :in-order-to ((test-op (test-op \"story/tests\"))))"
     "(defsystem \"story/tests\" :depends-on (\"story\") :components ((:file \"tests\"))"
     "  :perform (test-op (o c) (symbol-call :story-tests :run)))")
    ("story.lisp" "(defpackage :story (:use :cl) (:export #:mean))" "(in-package :story)"
     "(defmacro with-count ((count list) &body body)"
     "  `(let ((,count (length ,list))) ,@body))"
     "(defun mean (numbers)"
     "  (with-count (count numbers)"
     "    (/ (reduce #'+ numbers) count)))")
    ("tests.lisp" "(defpackage :story-tests (:use :cl) (:export #:run))"
     "(in-package :story-tests)"
     "(defun run ()" "  (print 'testing)" "  (assert (= 2 (story:mean '(1 3))))"
     "  (assert (= 0 (story:mean '()))))"))
  "The files of a system with a test that fails.")

(defun contexture-tools-lisp-real-decide (decision)
  "Decide on the next question, as DECISION says."
  (contexture-conversation-test-await-request)
  ;; The window of a batch is low.
  (save-window-excursion
    (contexture-conversation-view-approval)
    (contexture-conversation-test-read-approval))
  (contexture-conversation-approve decision)
  (llm-ert-wait-for (null contexture-conversation--approvals)))

(ert-deftest contexture-tools-lisp-real-story ()
  (contexture-tools-lisp-real-with-model
      '(((call "lisp_test" (:system "story")))
        ((call "lisp_look" (:what "definitions" :name "story:mean" :package "CL-USER"))
         (call "lisp_look" (:what "arglist" :name "story::with-count" :package "CL-USER")))
        ((call "lisp_evaluate" (:form "(delete-file \"story.lisp\")" :package "CL-USER")))
        ((call "lisp_evaluate" (:form "(loop)" :package "CL-USER" :seconds 1)))
        ((call "propose_edit" (:file "story.lisp" :old "(/ (reduce #'+ numbers) count)"
                                     :new "(if (zerop count) 0 (/ (reduce #'+ numbers) count))")))
        ((call "lisp_compile" (:file "story.lisp" :definition "mean")))
        ((call "lisp_test" (:system "story")))
        ("It is green.")
        ((call "lisp_evaluate" (:form "(sb-ext:exit :abort t)" :package "CL-USER")))
        ("The image died.")
        ((call "lisp_evaluate" (:form "(loop (sleep 0.001))" :package "CL-USER")))
        ((call "lisp_test" (:system "story")))
        ("All is green."))
    (pcase-dolist (`(,name . ,lines) contexture-tools-lisp-real-system)
      (apply #'contexture-test-file name lines))
    (contexture-tools-test-on t "lisp_test" "lisp_evaluate" "lisp_compile" "propose_edit")
    (contexture-conversation-test-open "talk")
    (contexture-tools-lisp-real-say "Mend the tests of story")
    (let ((contexture-lisp-compile nil))
      (contexture-tools-lisp-real-mend (current-buffer)))
    (contexture-conversation-test-wait)
    (contexture-tools-lisp-real-see-results
     '(("ended with 1 failure" "DIVISION-BY-ZERO" "(STORY-TESTS:RUN)")
       ("story\\.lisp:5: (DEFUN") ("(COUNT LIST)") ("did not allow the call")
       ("took longer than 1 second, and was stopped" "Backtrace:")
       ("accepted the change") ("\\`Compiled and loaded") ("ended with 0 failures")))
    ;; The failure of the first run left the context with the second.
    (with-current-buffer "*contexture: tests of story*"
      (should-not (contexture-test-items)))
    (contexture-tools-lisp-real-say "Leave the image")
    (contexture-tools-lisp-real-decide 'once)
    (contexture-conversation-test-wait)
    (contexture-tools-lisp-real-see (car (last (contexture-tools-lisp-real-results)))
                                    "connection to the Lisp closed before it answered")
    ;; Another image, in which the user interrupts what the model began.
    (contexture-lisp-real-until
     (not (contexture-lisp--connections contexture-lisp-real-client)))
    (contexture-lisp-real-connection)
    (contexture-tools-lisp-real-say "Look again")
    (contexture-tools-lisp-real-decide 'once)
    (llm-ert-wait-for contexture-tools-lisp--calls)
    (contexture-conversation-cancel)
    (contexture-conversation-test-wait)
    (llm-ert-wait-for (null contexture-tools-lisp--calls))
    (contexture-lisp-real-until
     (equal (contexture-lisp-real-eval
             '(cl:if (cl:find-package :contexture-tools)
                     (cl:length (cl:symbol-value (cl:find-symbol "*CALLS*" :contexture-tools)))
                     0))
            0))
    (contexture-tools-lisp-real-say "Test it once more")
    (contexture-tools-lisp-real-decide 'once)
    (contexture-conversation-test-wait)
    (contexture-tools-lisp-real-see (car (last (contexture-tools-lisp-real-results)))
                                    "ended with 0 failures")
    (kill-buffer "*contexture: tests of story*")))

(defun contexture-tools-lisp-real-say (text)
  "Ask the model TEXT in this conversation."
  (contexture-conversation--set-text "")
  (contexture-conversation-test-type text)
  (contexture-conversation-send))

(defun contexture-tools-lisp-real-results ()
  "Return the results of tools that the model has seen, in order."
  (cl-loop for message in (plist-get (car (last (llm-ert-shown))) :messages)
           when (eq (plist-get message :role) 'tool)
           collect (plist-get message :content)))

(defun contexture-tools-lisp-real-see-results (expected)
  "Fail unless the results have the parts EXPECTED, a list for each of them."
  (let ((results (contexture-tools-lisp-real-results)))
    (should (= (length results) (length expected)))
    (cl-mapc (lambda (result parts)
               (apply #'contexture-tools-lisp-real-see result parts))
             results expected)))

(defun contexture-tools-lisp-real-mend (talk)
  "Decide what the model asks in TALK until the tests are green."
  (mapc #'contexture-tools-lisp-real-decide '(once refuse once))
  (llm-ert-wait-for (contexture-review--open))
  (with-current-buffer (find-buffer-visiting
                        (expand-file-name "story.lisp" llm-ert-directory))
    (contexture-review-accept)
    (with-current-buffer talk
      (mapc #'contexture-tools-lisp-real-decide '(once once)))
    ;; Else another image would not have the change.
    (should (buffer-modified-p))
    (save-buffer)
    (kill-buffer)))

(ert-deftest contexture-tools-lisp-real-makes-items-of-failures ()
  (contexture-tools-lisp-real-with-model nil
    (contexture-test-file "sad.asd" "(defsystem \"sad\""
                          "  :perform (test-op (o c) (error \"So ~a\" 'sad)))")
    (contexture-tools-lisp-real-see
     (contexture-tools-lisp-real-tell #'contexture-tools-lisp--test "sad")
     "ended with 1 failure" "So SAD\n  \\[SIMPLE-ERROR\\]")
    (with-current-buffer "*contexture: tests of sad*"
      (should (cdr contexture-tools-change--items))
      (let ((item (car (contexture-test-items))))
        (should (eq (plist-get item :type) :error))
        (should (string-prefix-p "So SAD\n" (plist-get item :content))))
      (kill-buffer))
    (contexture-tools-lisp-real-see
     (contexture-tools-lisp-real-tell #'contexture-tools-lisp--test "no-such-system")
     "There is no system no-such-system")
    (dolist (name '("../x" "a*" "#.(print 1)" "" "a b"))
      (should-error (contexture-tools-lisp-real-tell #'contexture-tools-lisp--test name)))))

;;;; Test frameworks

(defconst contexture-tools-lisp-real-frameworks
  '(("fiveam" "(:use :cl :fiveam)"
     ("(def-suite :framed)" "(in-suite :framed)"
      "(test adds (is (= 2 (+ 1 1))))"
      "(test fails (is (= 3 (+ 1 1))))"
      "(test breaks (is (= 1 (car 7))))")
     "(symbol-call :fiveam :run! :framed)")
    ("parachute" "(:use :cl :parachute)"
     ("(define-test adds (is = 2 (+ 1 1)))"
      "(define-test fails (is = 3 (+ 1 1)))"
      "(define-test breaks (is = 1 (car 7)))")
     "(symbol-call :parachute :test :framed)")
    ("rove" "(:use :cl :rove)"
     ("(deftest adds (ok (= 2 (+ 1 1))))"
      "(deftest fails (testing \"sums\" (ok (= 3 (+ 1 1)))))"
      "(deftest breaks (ok (= 1 (car 7))))")
     "(symbol-call :rove :run :framed)"))
  "Test frameworks: system, what a package uses, tests, and how they are run.")

(defun contexture-tools-lisp-real-framework (name)
  "Test a system whose tests are by the framework NAME, or skip this.
ASDF finds the framework where it is configured to look, or below LISP_SYSTEMS_DIR.
Return what the model is told, and how many items the failures became."
  (let (told)
    (contexture-tools-lisp-real-with-model nil
      (pcase-let ((`(,_ ,package ,tests ,run)
                   (assoc name contexture-tools-lisp-real-frameworks)))
        (contexture-tools-lisp-real-evaluate
         (format "(require :asdf) (asdf:initialize-source-registry '(:source-registry %s
(:tree \"/usr/share/common-lisp/source/\") :inherit-configuration))"
                 (if-let* ((dir (getenv "LISP_SYSTEMS_DIR")))
                     (format "(:tree %S)" (file-name-as-directory dir))
                   "")))
        (unless (contexture-lisp-real-eval
                 `(cl:and (cl:funcall (cl:find-symbol "FIND-SYSTEM" :asdf) ,name nil) t))
          (ert-skip (format "ASDF finds no %s" name)))
        (apply #'contexture-test-file "framed.lisp"
               (format "(defpackage :framed %s)" package) "(in-package :framed)" tests)
        (contexture-test-file
         "framed.asd"
         (format "(defsystem \"framed\" :depends-on (%S) :components ((:file \"framed\"))" name)
         (format "  :perform (test-op (o c) %s))" run))
        (contexture-tools-lisp-real-evaluate
         "(asdf:clear-system \"framed\") (when (find-package :framed) (delete-package :framed))")
        (let ((text (contexture-tools-lisp-real-tell #'contexture-tools-lisp--test "framed")))
          (with-current-buffer "*contexture: tests of framed*"
            (setq told (list text (length (contexture-test-items))))
            (kill-buffer)))))
    told))

(ert-deftest contexture-tools-lisp-real-reads-fiveam ()
  (pcase-let ((`(,text ,items) (contexture-tools-lisp-real-framework "fiveam")))
    (should (equal items 2))
    (contexture-tools-lisp-real-see text "Did 3 checks\\." "ended with 2 failures")
    (contexture-tools-lisp-real-see
     text "FAILS: The following check failed: (= 3 (\\+ 1 1)) (\\+ 1 1) evaluated to 2")
    (contexture-tools-lisp-real-see text "BREAKS: .*7.*LIST" "\\[.*TYPE-ERROR\\]\n  (")
    ;; Neither the framework's frames nor what it says of the failures is told once more.
    (should-not (string-search "FIVEAM" text))
    (should (< (length text) 600))))

(ert-deftest contexture-tools-lisp-real-reads-parachute ()
  (pcase-let ((`(,text ,items) (contexture-tools-lisp-real-framework "parachute")))
    (should (equal items 2))
    (contexture-tools-lisp-real-see text "ended with 2 failures" "FRAMED::FAILS" "evaluated to"
                                    "FRAMED::BREAKS" "simple-type-error")
    ;; What was noticed meanwhile leaves no trace in the framework.
    (should-not (contexture-lisp-real-eval
                 '(cl:find-method (cl:symbol-function (cl:find-symbol "SUMMARIZE" :parachute))
                                  '(:before)
                                  (cl:list (cl:find-class
                                            (cl:find-symbol "REPORT" :parachute)))
                                  nil)))))

(ert-deftest contexture-tools-lisp-real-reads-rove ()
  (pcase-let ((`(,text ,items) (contexture-tools-lisp-real-framework "rove")))
    (should (equal items 2))
    (contexture-tools-lisp-real-see text "ended with 2 failures"
                                    "sums: .*Expect (= 3 (\\+ 1 1)) to be true\\.\n  (\\+ 1 1) = 2\n"
                                    "BREAKS: .*Expect" "\\[TYPE-ERROR\\]\nBacktrace:")))

(ert-deftest contexture-tools-lisp-real-offers-to-compile-what-was-accepted ()
  (contexture-tools-lisp-real-with
    (contexture-test-visiting (contexture-test-file "seven.lisp" "(in-package :cl-user)" ""
                                                    "(defun seven ()" "  6)")
      (let ((asked nil))
        (cl-letf (((symbol-function 'y-or-n-p)
                   (lambda (prompt) (push prompt asked) t)))
          (contexture-review--show
           (contexture-review--begin (- (point-max) 3) (- (point-max) 2)) "7" t)
          (contexture-review-accept))
        (should (equal asked '("Compile seven? ")))
        (llm-ert-wait-for
            (equal (contexture-tools-lisp-real-evaluate "(and (fboundp 'seven) (seven))") "=> 7"))))))

(ert-deftest contexture-tools-lisp-real-explains-the-error-of-the-debugger ()
  (contexture-tools-lisp-real-with-model '(("A string is no number."))
    (contexture-test-visiting (concat contexture-lisp-real-file ".lisp")
      (contexture-lisp-real-type "(shapes::mean '(1 2 \"x\"))" #'contexture-lisp-real-debugger)
      (unwind-protect
          (with-current-buffer (contexture-lisp-real-debugger)
            (contexture-lisp-explain-error)
            (llm-ert-wait-for (llm-ert-shown)))
        (contexture-lisp-real-abort))
      (should (equal (plist-get (car (llm-ert-shown)) :prompt)
                     contexture-lisp--error-question))
      (contexture-tools-lisp-real-see (plist-get (car (contexture-test-items)) :content)
                                      "\\`The value\n  \"x\"" "SHAPES::MEAN"))))

;;;; Many calls

(defun contexture-tools-lisp-real-many (count)
  "Look something up COUNT times, without waiting in between."
  (let ((answers 0))
    (dotimes (_ count)
      (contexture-tools-test-seen
       #'contexture-tools-lisp--look
       (lambda (text &optional _) (when (equal text "(NUMBERS)") (cl-incf answers)))
       "arglist" "total" "SHAPES"))
    (llm-ert-wait-for (= answers count))))

(ert-deftest contexture-tools-lisp-real-leaves-nothing-behind ()
  (contexture-tools-lisp-real-with
    (contexture-tools-lisp-real-many 1)
    (should-not (llm-ert-leftovers (dotimes (_ 20) (contexture-tools-lisp-real-many 50))))
    (should (equal (contexture-lisp-real-eval '(cl:length contexture-tools::*calls*)) 0))))

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

(ert-deftest contexture-tools-lisp-real-neither-expands-nor-compiles-when-it-looks-up ()
  (contexture-tools-lisp-real-with
    (let ((trace (expand-file-name "written")))
      (contexture-tools-lisp-real-evaluate
       (format "(defun cl-user::write-it () (with-open-file (s %S :direction :output \
:if-exists :supersede) (print 1 s)))
(defmacro cl-user::evil () (cl-user::write-it) 1)
(define-compiler-macro cl-user::sly-one (x) (cl-user::write-it) x)
(define-symbol-macro cl-user::evil-symbol (cl-user::evil))
(deftype cl-user::evil-type () (cl-user::write-it) 'integer)" trace))
      (should-not (file-exists-p trace))
      ;; The macro does what it says.
      (contexture-tools-lisp-real-evaluate "(macroexpand-1 '(cl-user::evil))")
      (should (file-exists-p trace))
      (delete-file trace)
      (dolist (name '("(cl-user::evil)" "(lambda () (cl-user::evil))"
                      "#'(lambda () (cl-user::evil))" "(function (lambda () (cl-user::evil)))"
                      "(setf (cl-user::evil))" "(setf cl-user::evil)" "(setf (lambda () (cl-user::evil)))"
                      "(setf #.(cl-user::write-it))" "(setf . #.(cl-user::write-it))" "#.(cl-user::write-it)"
                      "(lambda (&optional (x (cl-user::evil))) x)" "(macro-function (cl-user::evil))"
                      "(setf |x| (cl-user::evil))" "`,(cl-user::evil)" "cl-user::evil"
                      "cl-user::evil-symbol" "cl-user::evil-type" "cl-user::sly-one" "EVIL"))
        (dolist (what '("definitions" "callers" "callees" "references" "binds" "sets" "macroexpands"
                        "specializes" "describe" "arglist" "disassemble" "apropos" "macroexpand-1"
                        "macroexpand" "inspect"))
          (dolist (package '("CL-USER" "SHAPES"))
            (contexture-tools-lisp-real-look what name package)
            (should (equal (list what name (file-exists-p trace)) (list what name nil)))))))))

;; The clients read source files to find a definition in them.

(ert-deftest contexture-tools-lisp-real-runs-no-reader-macro-when-it-looks-up ()
  (contexture-tools-lisp-real-with
    (let ((trace (expand-file-name "written"))
          (file (contexture-test-file
                 "read.lisp" "(in-package :cl-user)"
                 "(defun placed (x) (list !x #.(progn (cl-user::write-it) 1) x))")))
      (unwind-protect
          (progn
            (contexture-tools-lisp-real-evaluate
             (format "(defun cl-user::write-it () (with-open-file (s %S :direction :output \
:if-exists :supersede) (print 1 s)))
(set-macro-character #\\! (lambda (s c) (declare (ignore c)) (cl-user::write-it) (read s t nil t)))
(load (compile-file %S))" trace file))
            (should (file-exists-p trace))
            (delete-file trace)
            (dolist (what '("definitions" "callers" "callees" "describe" "disassemble"))
              (contexture-tools-lisp-real-look what "placed" "CL-USER")
              (should (equal (list what (file-exists-p trace)) (list what nil)))))
        (contexture-tools-lisp-real-evaluate
         "(set-syntax-from-char #\\! #\\! *readtable* (copy-readtable nil))")))))

(ert-deftest contexture-tools-lisp-real-interns-nothing-when-it-looks-up ()
  (contexture-tools-lisp-real-with
    (dolist (name '("never-seen-1" "(setf never-seen-1)" "(never-seen-1)" "'never-seen-1"))
      (dolist (what '("describe" "definitions" "arglist" "disassemble" "inspect"))
        (contexture-tools-lisp-real-look what name "CL-USER")))
    (should (equal (contexture-tools-lisp-real-evaluate "(find-symbol \"NEVER-SEEN-1\" :cl-user)")
                   "=> NIL\n=> NIL"))))

(ert-deftest contexture-tools-lisp-real-names-each-image ()
  "An image that takes the place of another has another name in questions."
  (contexture-tools-lisp-real-with
    (let ((first (contexture-tools-lisp--touches)))
      (should (string-match-p "SBCL .*, pid [0-9]+\\'" first))
      (should (equal first (contexture-tools-lisp--touches)))
      (contexture-tools-lisp-real-evaluate "(sb-ext:exit :abort t)")
      (contexture-lisp-real-until
       (not (contexture-lisp--connections contexture-lisp-real-client)))
      (should-not (string-match-p "pid" (contexture-tools-lisp--touches)))
      (contexture-lisp-real-connection)
      (should-not (equal first (contexture-tools-lisp--touches))))))

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
