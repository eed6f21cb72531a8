;;; client.el --- Run script.sexp with epc.el  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Usage: emacs --batch -l client.el -f epc-script-run CONTEXTURE SCRIPT DIR
;; Starts the server as `epc:start-epc' does and fails with the first
;; answer that is not as the script expects.

;;; Code:

(require 'epc)

(defvar epc-script-large
  (apply #'concat (make-list 110000 "0123456λ\n"))
  "The text that $LARGE stands for.")

(defun epc-script-filled (value folder)
  "VALUE with the names of the script replaced, $DIR by FOLDER."
  (cond ((stringp value)
         (string-replace "$LARGE" epc-script-large
                         (string-replace "$DIR" folder value)))
        ((consp value)
         (mapcar (lambda (one) (epc-script-filled one folder)) value))
        (t value)))

(defun epc-script-texts (value)
  "VALUE as text, its strings as they are."
  (if (consp value)
      (mapconcat #'epc-script-texts value " ")
    (format "%s" value)))

(defun epc-script-await (call)
  "What comes of the deferred CALL: (:ok VALUE) or (:error VALUE).
`epc:call-sync' would take 300 ms for each."
  (let ((outcome nil))
    (deferred:error (deferred:nextc call (lambda (value) (setq outcome (list :ok value))))
                    (lambda (problem) (setq outcome (list :error problem))))
    (with-timeout (30 (error "No answer"))
      (while (not outcome)
        (accept-process-output nil 0.001)))
    outcome))

(defun epc-script-check (manager method arguments expected)
  "Call METHOD of MANAGER with ARGUMENTS and fail unless it is as EXPECTED."
  (pcase (cons (car expected)
               (epc-script-await (epc:call-deferred manager method arguments)))
    ((and `(is :ok ,value) (guard (equal value (cadr expected)))))
    ((and `(has :ok ,value)
          (guard (string-search (cadr expected) (epc-script-texts value)))))
    ((and `(error :error ,problem)
          (guard (string-search (cadr expected) (format "%S" problem)))))
    (other (error "%S: %s" method (truncate-string-to-width (format "%S" other) 300)))))

(defun epc-script-concurrently (manager)
  "Make 200 calls of MANAGER at once and wait for all."
  (let ((answered 0))
    (dotimes (number 200)
      (deferred:nextc (epc:call-deferred manager 'add-context
                                         (list :content (format "%d" number) :manager "many"))
                      (lambda (_) (setq answered (1+ answered)))))
    (with-timeout (30 (error "Only %d calls were answered" answered))
      (while (< answered 200)
        (accept-process-output nil 0.001)))))

(defun epc-script-run ()
  "Run the script that the command line names."
  (pcase-let* ((`(,program ,script ,folder) command-line-args-left)
               (manager (epc:start-epc program '("serve" "--ephemeral" "--tcp" "127.0.0.1:0")))
               (calls (with-temp-buffer
                        (insert-file-contents script)
                        (read (concat "(" (buffer-string) "\n)")))))
    (setq command-line-args-left nil)
    (unless (assq 'add-context (epc:sync manager (epc:query-methods-deferred manager)))
      (error "The methods are not listed"))
    (unless (eq :pong (epc:call-sync manager 'ping nil))
      (error "A synchronous call fails"))
    (dolist (call calls)
      (apply #'epc-script-check manager (epc-script-filled call folder)))
    (epc-script-concurrently manager)
    (epc:stop-epc manager)
    (princ (format "EPC: %d calls\n" (length calls)))))

(provide 'client)
;;; client.el ends here
