;;; contexture-tools-lisp.el --- A live Lisp image for models  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Tools by which a model works in the Lisp image that SLIME or SLY is
;; connected to.  `lisp_look' looks things up, without a question; the
;; other tools run code, and ask before.
;;
;; What a model wrote goes to the image as a string, and is never read in
;; Emacs.  contexture-tools.lisp, which is sent to the image first, does
;; the rest there.  Nothing waits; an error opens no debugger, but is the
;; result.

;;; Code:

(require 'contexture-lisp)
(require 'contexture-tools-change)
(eval-when-compile (require 'subr-x))

(defconst contexture-tools-lisp--longest 20000
  "Maximum number of characters of a form or a name that a model writes.")

(defconst contexture-tools-lisp--grace 5
  "Number of seconds that a form may take to end once it was stopped.")

(defconst contexture-tools-lisp--source
  (expand-file-name "contexture-tools.lisp"
                    (file-name-directory (or load-file-name buffer-file-name)))
  "The file with what tools do in the image.")

(defvar contexture-tools-lisp--last 0
  "Number of the last call.")

(defvar contexture-tools-lisp--calls nil
  "Calls that the image has not answered.")

(cl-defstruct (contexture-tools-lisp--call
               (:constructor contexture-tools-lisp--make-call) (:copier nil))
  "The call NUMBER, of ARGUMENTS, of CLIENT's image at CONNECTION.
DONE is called with its result.  TIMER will stop it; STOPPED says why it
was stopped."
  number arguments client connection done timer stopped)

;;;; Calls

(defun contexture-tools-lisp--start (done seconds &rest arguments)
  "Call the image with ARGUMENTS, and DONE with the result within SECONDS.
ARGUMENTS are those of `call' in contexture-tools.lisp but for the number.
Return a function that stops the call."
  (mapc #'contexture-tools-lisp--check arguments)
  (let* ((client (or (car (contexture-lisp--clients))
                     (error "Neither SLIME nor SLY is connected to a Lisp")))
         (call (contexture-tools-lisp--make-call
                :number (cl-incf contexture-tools-lisp--last) :arguments arguments
                :client client :connection (contexture-lisp--connection client)
                :done done)))
    (add-hook (contexture-lisp--client-close-hook client) #'contexture-tools-lisp--closed)
    (push call contexture-tools-lisp--calls)
    (setf (contexture-tools-lisp--call-timer call)
          (run-at-time seconds nil #'contexture-tools-lisp--stop call
                       (format "It took longer than %d seconds, and was stopped" seconds)))
    (contexture-tools-lisp--send call)
    (apply-partially #'contexture-tools-lisp--stop call "It was stopped")))

(defun contexture-tools-lisp--check (argument)
  "Signal an error if ARGUMENT cannot go to an image."
  (when (stringp argument)
    (when (> (length argument) contexture-tools-lisp--longest)
      (error "This is too long: %d characters, of at most %d"
             (length argument) contexture-tools-lisp--longest))
    (when (cl-some (lambda (it) (or (<= #xd800 it #xdfff) (> it #x10ffff))) argument)
      (error "This has what is no character"))))

(defun contexture-tools-lisp--send (call)
  "Send CALL to its image."
  (contexture-tools-lisp--evaluate-form
   call
   `(cl:if (cl:find-package "CONTEXTURE-TOOLS")
           (cl:funcall (cl:intern "CALL" "CONTEXTURE-TOOLS")
                       ,(contexture-tools-lisp--call-number call)
                       ,@(contexture-tools-lisp--call-arguments call))
           :missing)
   #'contexture-tools-lisp--answered))

(defun contexture-tools-lisp--evaluate-form (call form then)
  "Evaluate FORM in the image of CALL, and call THEN with CALL and the value."
  (contexture-lisp--ask
   (contexture-tools-lisp--call-client call) 'send
   (contexture-tools-lisp--call-connection call) form "COMMON-LISP-USER" t
   (lambda (result)
     (contexture--later
      (lambda ()
        (pcase result
          (`(:ok ,value) (funcall then call value))
          (_ (contexture-tools-lisp--finish
              call nil (format "The Lisp aborted this: %s" (cadr result))))))))))

(defun contexture-tools-lisp--answered (call answer)
  "End CALL with the image's ANSWER, or prepare the image for it."
  (pcase answer
    (:missing (contexture-tools-lisp--prepare call))
    (`(:ok (,result . ,failures) ,output)
     (contexture-tools-lisp--finish
      call (contexture-tools-lisp--text output (string-join (cons result failures) "\n\n"))
      nil failures))
    (`(:ok ,result ,output)
     (contexture-tools-lisp--finish call (contexture-tools-lisp--text output result)))
    (`(:failed ,problem ,output)
     (contexture-tools-lisp--finish call (contexture-tools-lisp--text output problem)))
    (`(:refused ,reason ,_) (contexture-tools-lisp--finish call nil reason))
    (`(:stopped ,where ,output)
     (contexture-tools-lisp--finish
      call nil (contexture-tools-lisp--text
                output (format "%s.\n%s" (contexture-tools-lisp--call-stopped call) where))))))

(defun contexture-tools-lisp--text (output result)
  "Return RESULT behind OUTPUT, what was printed."
  (concat output (if (string-match-p "[^\n]\\'" output) "\n" "") result))

(defun contexture-tools-lisp--prepare (call)
  "Send what the tools need to the image of CALL, then CALL again."
  (contexture-tools-lisp--evaluate-form
   call
   `(cl:let ((cl:*package* (cl:find-package "COMMON-LISP-USER"))
             (cl:*readtable* (cl:copy-readtable nil))
             (cl:*error-output* (cl:make-broadcast-stream)))
            (cl:handler-case
             (cl:with-input-from-string (stream ,(contexture-tools-lisp--code call))
                                        (cl:load stream)
                                        nil)
             (cl:error (problem) (cl:princ-to-string problem))))
   (lambda (call problem)
     (if problem
         (contexture-tools-lisp--finish
          call nil (format "The tools do not work in this Lisp: %s" problem))
       (contexture-tools-lisp--send call)))))

(defun contexture-tools-lisp--code (call)
  "Return what the tools need in the image of CALL."
  (with-temp-buffer
    (insert-file-contents contexture-tools-lisp--source)
    (when (equal (contexture-lisp--client-prefix (contexture-tools-lisp--call-client call))
                 "swank")
      (pcase-dolist (`(,from ,to) '(("slynk-backend:" "swank/backend:") ("slynk" "swank")))
        (goto-char (point-min))
        (while (search-forward from nil t) (replace-match to t t))))
    (buffer-string)))

(defun contexture-tools-lisp--stop (call why)
  "Stop CALL because of WHY, and wait a little for it to end."
  (when (memq call contexture-tools-lisp--calls)
    (cancel-timer (contexture-tools-lisp--call-timer call))
    (setf (contexture-tools-lisp--call-stopped call) why
          (contexture-tools-lisp--call-timer call)
          (run-at-time contexture-tools-lisp--grace nil
                       #'contexture-tools-lisp--finish call nil
                       (concat why ", but it goes on; the user can interrupt it")))
    (contexture-tools-lisp--evaluate-form
     call
     `(cl:if (cl:find-package "CONTEXTURE-TOOLS")
             (cl:funcall (cl:intern "STOP" "CONTEXTURE-TOOLS")
                         ,(contexture-tools-lisp--call-number call)))
     #'ignore)))

(defun contexture-tools-lisp--finish (call &rest result)
  "End CALL with RESULT, the arguments of its function, unless it has ended."
  (when (memq call contexture-tools-lisp--calls)
    (setq contexture-tools-lisp--calls (delq call contexture-tools-lisp--calls))
    (cancel-timer (contexture-tools-lisp--call-timer call))
    (apply (contexture-tools-lisp--call-done call) result)))

(defun contexture-tools-lisp--closed (connection)
  "End the calls of the image at CONNECTION, which is closed."
  (dolist (call contexture-tools-lisp--calls)
    (when (eq connection (contexture-tools-lisp--call-connection call))
      (contexture--later #'contexture-tools-lisp--finish
                         call nil "The connection to the Lisp closed before it answered"))))

;;;; What the tools do

(defun contexture-tools-lisp--evaluate (done form package &optional seconds)
  "Evaluate FORM in PACKAGE; call DONE with the values and the output.
It may take SECONDS."
  (contexture-tools-lisp--start done (contexture-tools-lisp--limit seconds 30)
                                package "EVALUATE" form))

(defun contexture-tools-lisp--look (done what name package &optional path)
  "Call DONE with what the image knows of NAME in PACKAGE.
WHAT says what is wanted; PATH leads to a part of what is inspected."
  (unless (string-match-p "\\`[0-9 ]*\\'" (or path ""))
    (error "The path must consist of numbers"))
  (contexture-tools-lisp--start
   done 30 package "LOOK" what name
   `(cl:list ,@(mapcar #'string-to-number (split-string (or path ""))))))

(defun contexture-tools-lisp--compile (done file &optional definition form package)
  "Compile FILE, or its DEFINITION, or FORM in PACKAGE.
Call DONE with the notes."
  (cond (form (contexture-tools-lisp--start
               done 120 (or package (error "Name the package of the form"))
               "COMPILE-TEXT" form "lisp_compile" 1 nil))
        ((null file) (error "Name a file, or give a form"))
        (definition
         (with-current-buffer (contexture-tools-emacs--buffer file)
           (contexture-tools-lisp--compile-definition done definition)))
        (t (contexture-tools-lisp--start done 120 "COMMON-LISP-USER" "COMPILE-WHOLE"
                                         (contexture-tools-lisp--saved file)))))

(defun contexture-tools-lisp--compile-definition (done name)
  "Compile the definition of NAME in this buffer, as it is now.
Call DONE with the notes."
  (save-restriction
    (widen)
    (pcase (contexture-defun--named name)
      (`((,beg . ,end))
       (contexture-tools-lisp--start
        done 120 (contexture-tools-lisp--package-at beg) "COMPILE-TEXT"
        (buffer-substring-no-properties beg end) (buffer-name) beg buffer-file-name))
      ('nil (error "%s is not defined in this file" name))
      (_ (error "%s is defined more than once in this file; compile the file" name)))))

(defun contexture-tools-lisp--package-at (position)
  "Return the name of the package in which POSITION of this buffer is read."
  (save-excursion
    (goto-char position)
    (if (re-search-backward
         "^(\\(?:cl:\\)?in-package[ \t\n]+\\(?:#?:\\|\"\\)?\\([^\") \t\n]+\\)" nil t)
        (match-string-no-properties 1)
      "COMMON-LISP-USER")))

(defun contexture-tools-lisp--saved (file)
  "Return the name of FILE, of the project, if it is saved."
  (let* ((name (contexture-tools-change--file file))
         (buffer (find-buffer-visiting name)))
    (cond ((and buffer (buffer-modified-p buffer))
           (error "%s is not saved in Emacs; compile a definition, or have the user save it" file))
          ((not (file-readable-p name)) (error "There is no file %s" file)))
    name))

(defun contexture-tools-lisp--test (done system &optional seconds)
  "Run the tests of SYSTEM, of ASDF; call DONE with what failed.
They may take SECONDS.  Failures become items of the project's context."
  (unless (string-match-p "\\`[[:alnum:]+_-][[:alnum:]./+_-]*\\'" system)
    (error "This is no name of a system: %s" system))
  (let ((project (contexture-tools-emacs--project)))
    (contexture-tools-lisp--start
     (lambda (text &optional problem failures)
       (if problem (funcall done nil problem)
         (contexture-tools-lisp--put project system text failures
                                     (apply-partially done text))))
     (contexture-tools-lisp--limit seconds 300) "COMMON-LISP-USER" "TEST" system project)))

(defun contexture-tools-lisp--limit (seconds default)
  "Return SECONDS, which a model asked for, within limits, or DEFAULT."
  (min 600 (max 1 (or seconds default))))

(defun contexture-tools-lisp--put (project system text failures then)
  "Show TEXT, of the tests of SYSTEM in PROJECT; make items of FAILURES; call THEN."
  (with-current-buffer (get-buffer-create (format "*contexture: tests of %s*" system))
    (let ((inhibit-read-only t))
      (special-mode)
      (setq default-directory project)
      (erase-buffer)
      (insert (contexture--visible text t)))
    (contexture-tools-change--put
     (mapcar (lambda (failure)
               (contexture-sources--params
                :error :tool failure
                (list :system system :project project :language "text")))
             failures)
     then)))

;;;; The tools

(defconst contexture-tools-lisp--package
  '(package "Name of the package in which to read, such as CL-USER")
  "The argument that names a package.")

(contexture-define-tool "lisp_look" #'contexture-tools-lisp--look
  `((what "definitions, callers, callees, references, binds, sets, macroexpands or specializes \
(where NAME is defined, called, called from it, read, bound, set, expanded, specialized); \
describe, arglist, disassemble; apropos; macroexpand-1 or macroexpand (of a form); \
or inspect (of a variable's value; * is the value of the last lisp_evaluate)")
    (name "Symbol, with its package if it has another; or form, or part of a name")
    ,contexture-tools-lisp--package
    (path "Numbers of the parts to go to when inspecting, such as \"2 0\"" :optional t))
  :reads
  :description "Looks up in the running Lisp image."
  :async t :seconds 60)

(contexture-define-tool "lisp_evaluate" #'contexture-tools-lisp--evaluate
  `((form "The forms to evaluate, in order")
    ,contexture-tools-lisp--package
    (seconds "Time limit, 30 if left out, 600 at most" :type integer :optional t))
  :changes
  :description "Evaluates forms in the running Lisp image, and returns the output and the \
values of the last one, or the condition with restarts and backtrace.  (trace f) and (untrace) \
work: traces are part of the output."
  :touches "all that the Lisp can"
  :async t :seconds 660)

(contexture-define-tool "lisp_compile" #'contexture-tools-lisp--compile
  '((file "File of the project, unless there is a form" :optional t)
    (definition "Name of a definition in the file, which need not be saved; all of the file \
if left out" :optional t)
    (form "Form to compile in place of a file" :optional t)
    (package "Name of the form's package" :optional t))
  :changes
  :description "Compiles a file, a definition or a form, loads it into the running Lisp image, \
and returns the compiler's notes."
  :touches "all that the Lisp can"
  :async t :seconds 180)

(contexture-define-tool "lisp_test" #'contexture-tools-lisp--test
  '((system "Name of the ASDF system")
    (seconds "Time limit, 300 if left out, 600 at most" :type integer :optional t))
  :changes
  :description "Runs the tests of a system in the running Lisp image, by asdf:test-system, and \
returns their output and what failed, with backtraces."
  :touches "all that the Lisp can"
  :async t :seconds 660)

(provide 'contexture-tools-lisp)
;;; contexture-tools-lisp.el ends here
