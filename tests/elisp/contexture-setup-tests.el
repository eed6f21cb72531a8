;;; contexture-setup-tests.el --- Setting up agents  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-doctor)

(defmacro contexture-setup-tests--with (&rest body)
  "Run BODY with a home folder of its own, which is the current one."
  (declare (indent 0) (debug t))
  `(contexture-test-with-state
     (let ((process-environment
            (append (list (concat "HOME=" (directory-file-name llm-ert-directory))
                          "XDG_CONFIG_HOME" "CODEX_HOME" "GEMINI_CLI_HOME" "CLAUDE_CONFIG_DIR")
                    process-environment)))
       ,@body)))

(defun contexture-setup-tests--answering (answer function)
  "Call FUNCTION, with ANSWER to each question.  Return the questions."
  (let (asked)
    (cl-letf (((symbol-function 'y-or-n-p)
               (lambda (question) (push question asked) answer)))
      (funcall function))
    asked))

(ert-deftest contexture-setup-agent-shows-then-asks-then-writes ()
  (contexture-setup-tests--with
    (let ((file (concat llm-ert-directory ".gemini/settings.json")))
      (should (equal (contexture-setup-tests--answering
                      nil (lambda ()
                            (contexture-test-message "nothing was changed"
                              (contexture-setup-agent "gemini"))))
                     '("Add this? ")))
      (should-not (file-exists-p file))
      (with-current-buffer contexture-setup-buffer
        (goto-char (point-min))
        (should (derived-mode-p 'diff-mode))
        (should (search-forward "+  \"mcpServers\": {" nil t)))
      (contexture-setup-tests--answering
       t (lambda ()
           (contexture-test-message "settings.json: written"
             (contexture-setup-agent "gemini"))))
      (should (file-exists-p file))
      (contexture-test-message "nothing to change"
        (contexture-setup-agent "gemini"))
      (should (equal (contexture-setup-tests--answering
                      t (lambda () (contexture-setup-agent "gemini" nil t)))
                     '("Remove this? ")))
      (should-not (file-exists-p file)))))

(ert-deftest contexture-setup-agent-says-why-it-cannot ()
  (contexture-setup-tests--with
    (make-directory (concat llm-ert-directory ".gemini/settings.json") t)
    (should (string-match-p
             "not a regular file"
             (cadr (should-error (contexture-setup-agent "gemini") :type 'user-error))))))

(ert-deftest contexture-setup-agent-reads-an-agent-and-a-place ()
  (llm-ert-with-files '((".git/config" . ""))
    (dolist (case '(("Codex" "codex" nil)
                    ("Codex, only in this project" "codex" t)
                    ("OpenCode" "opencode" nil)))
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_ names &rest _) (car (member (car case) names)))))
        (pcase-let ((`(,agent ,project) (contexture-setup--read "Agent: ")))
          (should (equal agent (nth 1 case)))
          (should (equal project (and (nth 2 case) (expand-file-name default-directory)))))))))

(provide 'contexture-setup-tests)
;;; contexture-setup-tests.el ends here
