;;;; contexture-tools.lisp --- What tools of models do in a Lisp image

;; Copyright (C) 2026 The Contexture authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; contexture-tools.el sends this text to an image when a model first calls a tool there. For
;; SLIME, it puts swank in place of slynk before.
;;
;; What a model wrote comes as strings. Where they are only looked up, no reader macro of the image
;; is in force and *READ-EVAL* is off. Nothing here opens the debugger.

(defpackage :contexture-tools
  (:use :cl)
  (:export #:call #:stop))

(in-package :contexture-tools)

(defconstant +longest+ 16000
  "Maximum number of characters of each text that a model is shown.")

(defvar *number* nil
  "Number of the call that this thread carries out.")

(defvar *calls* '()
  "Alist from the numbers of the calls that run to their threads.")

(defvar *stopped* '()
  "Numbers of calls that were stopped before they began.")

(defvar *lock* (slynk-backend:make-lock :name "contexture calls"))

(defconstant +frames+ 30
  "Maximum number of frames of a backtrace.")

(defparameter *frameworks* '("FIVEAM::" "(LABELS %TEST-" "PARACHUTE" "ROVE/" "ASDF/" "UIOP/")
  "What is in the first words of a frame that runs tests, and tells nothing about why one failed.")

(defvar *failures*)
(setf (documentation '*failures* 'variable)
      "What failed in the tests that this thread runs, the last first; unbound if it runs none.")

(defvar *values* '()
  "Values of the last form that a model evaluated, to inspect.")

(defmacro with-lock (&body body)
  `(slynk-backend:call-with-lock-held *lock* (lambda () ,@body)))

;;; Texts

(defun call-with-text (function)
  "Return what FUNCTION writes to the stream that it is called with, cut where it is too long."
  (let* ((kept (make-string-output-stream)) (length 0)
         (stream (slynk-backend:make-output-stream
                  (lambda (text)
                    (write-string text kept :end (max 0 (min (length text) (- +longest+ length))))
                    (incf length (length text))))))
    (unwind-protect (funcall function stream)
      (finish-output stream)
      (when (> length +longest+)
        (format kept "~&... (~d of ~d characters)" +longest+ length)))
    (get-output-stream-string kept)))

(defmacro with-text ((stream) &body body)
  `(call-with-text (lambda (,stream) ,@body)))

(defun text-of (object)
  "Return OBJECT as the Lisp prints it, without what is too long or too deep."
  (let ((*print-length* 200) (*print-level* 12) (*print-lines* 200) (*print-circle* t)
        (*print-pretty* t) (*print-readably* nil))
    (with-text (stream) (prin1 object stream))))

(defun first-line (text)
  (string-trim " " (subseq text 0 (position #\Newline text))))

;;; Calls

(defun call (number package what &rest arguments)
  "Carry out the call NUMBER: WHAT with ARGUMENTS, strings, in PACKAGE.
Return a list of a keyword, the result and what was printed."
  (let* ((result nil)
         (output (with-text (stream)
                   (with-lock (push (cons number (slynk-backend:current-thread)) *calls*))
                   (unwind-protect
                        (setf result (guarded number stream
                                              (lambda ()
                                                (in-package-named package what arguments))))
                     (with-lock (setf *calls* (delete number *calls* :key #'car)))))))
    (append result (list output))))

(defun in-package-named (package what arguments)
  "Call the function WHAT of this package with ARGUMENTS in PACKAGE."
  (let* ((*package* (or (find-package package) (find-package (string-upcase package))
                        (refuse "There is no package ~a" package)))
         (slynk::*buffer-package* *package*)
         (slynk::*buffer-readtable* (slynk::guess-buffer-readtable (package-name *package*))))
    (apply (find-symbol (string-upcase what) :contexture-tools) arguments)))

(defun guarded (number stream function)
  "Return a list of :ok and what FUNCTION returns; it writes to STREAM, and reads nothing.
In place of a debugger, return :failed and what went wrong; if it is stopped, :stopped and where.
If it refuses something, return :refused and why."
  (let* ((outer (compute-restarts))
         (nothing (make-concatenated-stream))
         (both (make-two-way-stream nothing stream))
         (*standard-input* nothing) (*standard-output* stream) (*error-output* stream)
         (*trace-output* stream) (*query-io* both) (*debug-io* both) (*terminal-io* both))
    (catch 'end
      (let ((*number* number))
        (when (member number *stopped*)
          (throw 'end (list :stopped "It had not begun.")))
        (slynk-backend:call-with-debugger-hook
         (lambda (condition hook)
           (declare (ignore hook))
           (unless (boundp '*failures*)
             (throw 'end (list :failed (problem condition outer))))
           (test-problem condition)
           (let ((next (next-check condition)))
             (if next (invoke-restart next) (throw 'tests nil))))
         (lambda () (list :ok (funcall function))))))))

(defun refuse (control &rest arguments)
  "End this call, which cannot be carried out, with a reason in words."
  (throw 'end (list :refused (apply #'format nil control arguments))))

(defun stop (number)
  "End the call NUMBER where it is, or once it begins."
  (let ((thread (with-lock (cdr (assoc number *calls*)))))
    (flet ((end ()
             (if (eql number *number*)
                 (throw 'end (list :stopped (backtrace)))
                 (push number *stopped*))))
      (if thread
          (slynk-backend:interrupt-thread thread #'end)
          (end)))
    nil))

(defun problem (condition outer)
  "Return CONDITION with the restarts that are not OUTER ones and the backtrace, as text."
  (format nil "~a~%  [~a]~%~@[~%Restarts:~%~{  ~a~%~}~]~%~a"
          (cut (slynk::safe-condition-message condition))
          (type-of condition)
          (mapcar (lambda (restart)
                    (format nil "[~a] ~a" (restart-name restart)
                            (ignore-errors (princ-to-string restart))))
                  (set-difference (compute-restarts condition) outer))
          (backtrace)))

(defun cut (text)
  (with-text (stream) (write-string text stream)))

(defun backtrace ()
  "Return the frames of this thread down to the call, as text."
  (format nil "Backtrace:~%~:{  ~d: ~a~%~}"
          (loop for frame in (frames)
                for number from 0 below +frames+
                collect (list number frame))))

(defun frames ()
  "Return the first lines of the frames of this thread down to the call."
  (let ((frames (slynk-backend:call-with-debugging-environment
                 (lambda () (mapcar #'second (slynk:backtrace 0 60))))))
    (flet ((own-p (frame) (search "CONTEXTURE-TOOLS:" frame)))
      ;; Frames of this file are at the top as well.
      (loop while (and frames (own-p (first frames))) do (pop frames))
      (mapcar #'first-line (subseq frames 0 (position-if #'own-p frames))))))

;;; Evaluating

(defun evaluate (text)
  "Evaluate the forms in TEXT, one after the other; return the values of the last as text."
  (let ((*readtable* slynk::*buffer-readtable*))
    (with-input-from-string (stream text)
      (loop for form = (read stream nil stream)
            until (eq form stream)
            do (setf *values* (multiple-value-list (eval form))))))
  (format nil "~:[; No values~;~:*~{=> ~a~^~%~}~]" (mapcar #'text-of *values*)))

;;; Compiling

(defmacro quietly (&body body)
  "Evaluate BODY without what compilers print beside their notes."
  `(let* ((*standard-output* (make-broadcast-stream))
          (*error-output* *standard-output*))
     ,@body))

(defun compile-text (text buffer position file)
  "Compile TEXT, which is at POSITION of BUFFER, a name, and FILE, or nil, and load it."
  (report (quietly
            (slynk:compile-string-for-emacs text buffer `((:position ,position)) file nil))))

(defun compile-whole (file)
  "Compile FILE and load it."
  (let* ((result (quietly
                   (slynk:compile-file-for-emacs file nil)))
         (fasl (sixth result)))
    (when (and (third result) fasl)
      (load fasl))
    (report result)))

(defun report (result)
  "Return RESULT, of a compilation, as text."
  (destructuring-bind (notes successp &rest more) (rest result)
    (declare (ignore more))
    (format nil "~:[It did not compile.~;Compiled and loaded.~]~{~a~}"
            successp
            (loop for note in notes
                  collect (format nil "~%~@[~a: ~]~(~a~): ~a~@[~%~a~]"
                                  (place (getf note :location)) (getf note :severity)
                                  (cut (getf note :message))
                                  (getf note :source-context))))))

;;; Testing

(defun fail (control &rest arguments)
  "Note a failure of a test as a text."
  (push (apply #'format nil control arguments) *failures*))

(defun test-problem (condition)
  "Note CONDITION, with which a test ended, with the frames that are not of a test framework.
The restarts are ASDF's and the framework's."
  (let* ((frames (frames))
         (checked (find-restart-named "IGNORE-FAILURE" condition)) ; a check of FiveAM
         (text (cut (slynk::safe-condition-message condition)))
         (test (and (find-package :fiveam) (find-symbol "CURRENT-TEST" :fiveam))))
    (fail "~@[~a: ~]~a~@[~%  [~a]~]~{~%  ~a~}"
          (and test (boundp test) (funcall (find-symbol "NAME" :fiveam) (symbol-value test)))
          (if checked (joined text) text)
          (and (not checked) (type-of condition))
          (loop for frame in (if checked (rest frames) frames)
                until (framework-p frame)
                repeat 8 collect frame))))

(defun framework-p (frame)
  (let ((end (min 60 (length frame))))
    (some (lambda (part) (search part frame :end2 end)) *frameworks*)))

(defun joined (text)
  "Return TEXT on one line; a check of FiveAM has an empty line between any two words."
  (format nil "~{~a~^ ~}"
          (loop for start = 0 then (1+ end)
                for end = (position #\Newline text :start start)
                for line = (string-trim " " (subseq text start end))
                unless (string= line "") collect line
                while end)))

(defun parachute-failures (report)
  "Note each failure in REPORT, of Parachute."
  (flet ((of (name object) (funcall (find-symbol name :parachute) object)))
    (let ((failed (remove :failed (coerce (of "RESULTS" report) 'list)
                          :key (lambda (result) (of "STATUS" result)) :test-not #'eql))
          (parent (find-symbol "PARENT-RESULT" :parachute)))
      (flet ((children (result) (intersection failed (coerce (of "RESULTS" result) 'list))))
        (dolist (result failed)
          (let ((test (find-if (lambda (other)
                                 (and (typep other parent) (member result (children other))))
                               failed)))
            ;; A test fails with its parts.
            (unless (and (typep result parent) (children result))
              (fail "~@[~a~%~]~a" (and test (oneline test))
                    (funcall (find-symbol "FORMAT-RESULT" :parachute) result :extensive)))))))))

(defun oneline (result)
  (funcall (find-symbol "FORMAT-RESULT" :parachute) result :oneline))

(defun rove-failure (assertion)
  "Note ASSERTION, a failed one of Rove."
  (flet ((of (name) (funcall (find-symbol name :rove/core/result) assertion)))
    (fail "~{~a: ~}~a~%~{  ~a~%~}~@[  ~a~%~]~@[Backtrace:~%~{  ~a~%~}~]"
          (of "ASSERTION-LABELS")
          (of "ASSERTION-DESCRIPTION")
          (loop for argument in (of "ASSERTION-ARGS")
                for value in (of "ASSERTION-VALUES")
                unless (eql argument value)
                collect (format nil "~a = ~a" (text-of argument) (text-of value)))
          (let ((reason (of "ASSERTION-REASON")))
            (and reason (format nil "~a~%  [~a]" (cut (slynk::safe-condition-message reason))
                                (type-of reason))))
          (remove-if #'framework-p
                     (loop for frame in (of "ASSERTION-STACKS")
                           repeat 8 collect (first-line (text-of frame)))))))

(defparameter *noticed*
  '((:parachute "SUMMARIZE" ("REPORT") parachute-failures 0)
    (:rove/core/stats "RECORD" (t "FAILED-ASSERTION") rove-failure 1))
  "Test frameworks: package, generic function, its arguments' classes, what takes one of them.")

(defun call-noticing (function)
  "Call FUNCTION; note the failures that Parachute and Rove report meanwhile."
  (let ((methods '()))
    (unwind-protect
         (progn
           (loop for (package name classes noter position) in *noticed*
                 when (find-package package)
                   do (push (cons (symbol-function (find-symbol name package))
                                  (notice name package classes noter position))
                            methods))
           (funcall function))
      (loop for (generic . method) in methods do (remove-method generic method)))))

(defun notice (name package classes noter position)
  "Add a method to the generic function with NAME in PACKAGE, and return the method.
It is for CLASSES, and calls NOTER with the argument at POSITION."
  (let ((arguments (list (gensym) (gensym))))
    (eval `(defmethod ,(find-symbol name package) :before
               ,(loop for class in classes for argument in arguments
                      collect (list argument (if (stringp class) (find-symbol class package)
                                                 class)))
             (,noter ,(nth position arguments))))))

(defun next-check (condition)
  "Return the restart by which FiveAM goes on after CONDITION in a test, or nil."
  (when (find-package :fiveam)
    (or (find-restart-named "IGNORE-FAILURE" condition)
        (find 'ignore (compute-restarts condition) :key #'restart-name :from-end t))))

(defun find-restart-named (name condition)
  "Return the restart with the name NAME of FiveAM for CONDITION, or nil."
  (and (find-package :fiveam) (find-restart (find-symbol name :fiveam) condition)))

(defun asdf (name &rest arguments)
  "Call the function with NAME of ASDF with ARGUMENTS."
  (require :asdf)
  (apply (find-symbol name :asdf) arguments))

(defun test (system folder)
  "Test the ASDF system with the name SYSTEM, which may be in FOLDER.
Return what came of it, and each condition and each failure of FiveAM as a text."
  (unless (asdf "FIND-SYSTEM" system nil)
    (let ((files (directory (merge-pathnames
                             (make-pathname :directory '(:relative :wild-inferiors) :type "asd"
                                            :name (subseq system 0 (position #\/ system)))
                             (slynk-backend:filename-to-pathname folder)))))
      (unless files (refuse "There is no system ~a in ASDF or in the project" system))
      (asdf "LOAD-ASD" (first files))))
  (let ((*failures* '()) (said (make-string-output-stream)))
    (catch 'tests
      (handler-bind ((warning #'muffle-warning))
        ;; The tests are loaded first, so that their framework is known before they run.
        (quietly
          (dolist (suffix '("" "/tests" "/test" "-tests" "-test"))
            (let ((name (concatenate 'string system suffix)))
              (when (asdf "FIND-SYSTEM" name nil)
                (asdf "LOAD-SYSTEM" name)))))
        (progv (and (find-package :fiveam)
                    (mapcar (lambda (name) (find-symbol name :fiveam))
                            '("*ON-FAILURE*" "*ON-ERROR*" "*TEST-DRIBBLE*")))
            (list :debug :debug said)
          (call-noticing (lambda () (asdf "TEST-SYSTEM" system))))))
    (cons (format nil "~{~a~%~}The tests of ~a ended with ~d failure~:p."
                  (checks (get-output-stream-string said)) system (length *failures*))
          (reverse *failures*))))

(defun checks (said)
  "Return the lines that tell how many checks there were; FiveAM has SAID the failures, too."
  (with-input-from-string (stream said)
    (loop for line = (read-line stream nil)
          while line when (search " checks." line) collect (string-trim " " line))))

;;; Looking up

;; A model looks up without asking, so nothing here may run what a model wrote. A model writes only
;; names and numbers: NAMED finds symbols that exist by PARSE-SYMBOL, which knows no reader macros
;; and interns nothing. No form is expanded or compiled, and none of the model is read. The client
;; reads source files to find places in them: LOOK turns *READ-EVAL* and the image's reader macros
;; off. What is found is printed, and that
;; calls methods that the image has: PRINT-OBJECT and functions of *PRINT-PPRINT-DISPATCH*,
;; DESCRIBE-OBJECT, DOCUMENTATION, EMACS-INSPECT, accessors of conditions, and readers of slots by
;; way of SLOT-VALUE-USING-CLASS. The inspector asks of a symbol whether it is a type, and DESCRIBE
;; of a function what types it takes: both call the expander of a DEFTYPE, with no arguments of a
;; model. A model can have defined such a method or expander only by LISP_EVALUATE or LISP_COMPILE,
;; for which the user was asked.

;; Runs nothing of a model's: it calls PARSE-SYMBOL only.
(defun named (name)
  "Return the symbol with NAME, which exists, or the function name (setf SYMBOL)."
  (let ((setf (and (string-prefix-p "(setf " name) (eql (position #\) name) (1- (length name))))))
    (if setf
        (list 'setf (named-symbol (string-trim " " (subseq name 6 (1- (length name))))))
        (named-symbol name))))

(defun named-symbol (name)
  "Return the symbol with NAME, which exists."
  (when (find-if (lambda (character) (find character "()'`,;\"#")) name)
    (refuse "~a is neither a symbol nor (setf SYMBOL); lisp_evaluate works with forms" name))
  (multiple-value-bind (symbol found) (slynk::parse-symbol name)
    (if found symbol
        (refuse "There is no symbol ~a in the package ~a" name (package-name *package*)))))

(defun string-prefix-p (prefix text)
  (eql (mismatch prefix text) (length prefix)))

;; Runs nothing of a model's: DESCRIBE calls methods of DESCRIBE-OBJECT and PRINT-OBJECT. It would
;; expand a type, and so a DEFTYPE, which is left out.
(defun description (thing)
  "Return what DESCRIBE prints of THING, or the documentation if DESCRIBE would expand a type."
  (if #+sbcl (and (symbolp thing)
                  (not (eq (symbol-package thing) (find-package :cl)))
                  (eq (sb-int:info :type :kind thing) :defined))
      #-sbcl nil
      (format nil "~:{~(~a~): ~a~%~}"
              (loop for (kind text) on (slynk-backend:describe-symbol-for-emacs thing) by #'cddr
                    collect (list kind text)))
      (with-text (stream) (describe thing stream))))

;; Runs nothing of a model's: a function that is compiled already is printed, by PRINT-OBJECT for
;; its constants.
(defun machine-code (name)
  "Return the machine code of the function called NAME.
It is compiled already: compiling would expand macros."
  (let ((function (and (fboundp name) (fdefinition name))))
    (cond ((null function) (refuse "~a is not a function" name))
          ((not (compiled-function-p function))
           (refuse "~a is not compiled; lisp_compile compiles" name))
          ;; The Lisp prints to *STANDARD-OUTPUT*.
          (t (with-text (*standard-output*) (disassemble function))))))

(defparameter *finders*
  '(("definitions" . slynk-backend:find-definitions)
    ("callers" . slynk-backend:who-calls)
    ("callees" . slynk-backend:list-callees)
    ("references" . slynk-backend:who-references)
    ("binds" . slynk-backend:who-binds)
    ("sets" . slynk-backend:who-sets)
    ("macroexpands" . slynk-backend:who-macroexpands)
    ("specializes" . slynk-backend:who-specializes))
  "Alist from what is wanted to functions that find places by a symbol.")

;; Runs nothing of a model's: it does only what the functions below do. A finder takes a symbol and
;; asks the compiler's tables, and the client reads the source files that these name. ARGLIST is
;; printed by TEXT-OF.
(defun look (what text path)
  "Return what the image knows of TEXT; WHAT says what is wanted, PATH is that of `inspect-part'."
  (let ((finder (cdr (assoc what *finders* :test #'string=)))
        (*read-eval* nil)
        (*readtable* (copy-readtable nil))
        (slynk::*readtable-alist* '()))
    (handler-bind ((error (lambda (condition)
                            (refuse "~a" (cut (slynk::safe-condition-message condition))))))
      (cond (finder (places (funcall finder (named text))))
            ((string= what "describe") (description (thing text)))
            ((string= what "arglist") (text-of (slynk-backend:arglist (named text))))
            ((string= what "apropos") (apropos-text text))
            ((string= what "disassemble") (machine-code (named text)))
            ((string= what "inspect") (inspect-part text path))
            (t (refuse "Nothing can be looked up by ~a" what))))))

;; Runs nothing of a model's: it finds packages and symbols that exist.
(defun thing (name)
  "Return the symbol with NAME, or else the package."
  (let ((package (or (find-package name) (find-package (string-upcase name)))))
    (if (and package (not (nth-value 1 (slynk::parse-symbol name))))
        package
        (named name))))

;; Runs nothing of a model's: the name is compared with those of symbols. DOCUMENTATION is called
;; for those found.
(defun apropos-text (text)
  "Return the symbols whose names have TEXT and that are defined, with what they are."
  (format nil "~:{~a: ~(~{~a~^, ~}~)~%~}"
          (sort (loop for symbol in (remove-duplicates (apropos-list text))
                      for kinds = (loop for (kind nil)
                                          on (slynk-backend:describe-symbol-for-emacs symbol)
                                        by #'cddr collect kind)
                      when (and kinds (not (keywordp symbol)))
                        collect (list (prin1-to-string symbol) kinds))
                #'string< :key #'first)))

;; Runs nothing of a model's: definitions are names, printed by PRINT-OBJECT. The files are those
;; that the image was loaded from; their lines are counted.
(defun places (found)
  "Return FOUND, pairs of a definition and its location, as lines of text."
  (if (eq found :not-implemented) "This Lisp does not know that"
      (format nil "~:[nothing is known~;~:*~{~a~%~}~]"
              (remove-duplicates
               (loop for (definition location) in found
                     collect (format nil "~@[~a: ~]~a" (place location)
                                     (first-line (text-of definition))))
               :test #'string=))))

(defun place (location)
  "Return the file and the line of LOCATION as text, or nil."
  (let* ((properties (and (eq (first location) :location) (rest location)))
         (file (car (last (or (assoc :file properties) (assoc :buffer-and-file properties)))))
         (position (second (assoc :position properties))))
    (and file (format nil "~a~@[:~d~]" file (line-number file position)))))

(defun line-number (file position)
  "Return the line of POSITION in FILE, or nil."
  (ignore-errors
   (with-open-file (stream file)
     (1+ (loop repeat (1- position)
               for character = (read-char stream nil)
               while character
               count (char= character #\Newline))))))

;;; Inspecting

;; Runs nothing of a model's: EMACS-INSPECT makes the parts, of objects that the image has, and
;; PRINT-OBJECT prints them. No action of the inspector is called.
(defun inspect-part (name path)
  "Return what the value of the variable NAME has, or a part of it by PATH, a list of numbers.
The name * stands for what a model evaluated last."
  (let ((object (if (string= name "*") (first *values*) (symbol-value (named name)))))
    (call-with-inspector
     (lambda ()
       (let ((seen (slynk::inspect-object object)))
         (dolist (number path)
           (setf seen (slynk:inspect-nth-part number)))
         (inspected-text seen))))))

(defun call-with-inspector (function)
  "Call FUNCTION with an inspector that is not the user's."
  (let ((state (find-symbol "*ISTATE*" :slynk))) ; in SLIME
    (if state
        (progv (list state) '(nil) (funcall function))
        (let ((inspector (or (funcall (find-symbol "FIND-INSPECTOR" :slynk) "contexture")
                             (make-instance (find-symbol "INSPECTOR" :slynk)
                                            :name "contexture"))))
          (unwind-protect
               (progv (mapcar (lambda (name) (find-symbol name :slynk))
                              '("*CURRENT-INSPECTOR*" "*TARGET-INSPECTOR*"))
                   (list inspector inspector)
                 (funcall function))
            (funcall (find-symbol "RESET-INSPECTOR" :slynk) inspector))))))

(defun inspected-text (seen)
  "Return SEEN, what an inspector shows, as text; numbers are before the parts."
  (with-text (stream)
    (format stream "~a~%" (getf seen :title))
    (dolist (part (first (getf seen :content)))
      (if (stringp part) (write-string part stream)
          (destructuring-bind (kind text &optional number) part
            (case kind
              (:value (format stream "[~d] ~a" number text))
              (:label (write-string text stream))))))))
